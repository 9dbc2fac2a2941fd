// Package program is the main function of the servers in this module: it reads the options of the
// command line and serves on standard input and output.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// An Option is a word of the command line of the form name=value. An option whose name begins with
// -- has no value.
type Option struct {
	Name, Description string
	Set               func(value string) error
}

// Server is a server that must be closed.
type Server interface {
	mcp.Handler
	io.Closer
}

// Main runs a program. It sets the options that the command line names, opens the server and serves
// it until the client closes standard input or the user presses Ctrl-C. It does not return.
func Main(name, description string, options []Option, open func(context.Context) (Server, error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	help, err := readOptions(os.Args[1:], options)
	switch {
	case help:
		fmt.Print(describeOptions(name, description, options))
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	if err := serveServer(ctx, open); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func serveServer(ctx context.Context, open func(context.Context) (Server, error)) error {
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return stdio.Serve(ctx, s)
}

// readOptions sets the options that words name. It reports whether a word asks for help.
func readOptions(words []string, options []Option) (help bool, err error) {
	for _, word := range words {
		if word == "-h" || word == "-help" || word == "--help" {
			return true, nil
		}
		name, value, found := strings.Cut(word, "=")
		i := slices.IndexFunc(options, func(o Option) bool { return o.Name == name })
		switch {
		case i < 0 && !found:
			return false, fmt.Errorf("%q is not an option: --help lists them", word)
		case i < 0:
			return false, fmt.Errorf("there is no option %q: --help lists them", name)
		case found == isFlag(name):
			return false, fmt.Errorf("%q is not an option: want %s", word, optionForm(name))
		}
		if err := options[i].Set(value); err != nil {
			return false, fmt.Errorf("the option %s: %w", name, err)
		}
	}
	return false, nil
}

// ParseInterval reads a duration that is at least least.
func ParseInterval(value string, least time.Duration) (time.Duration, error) {
	interval, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration: want one such as 30s", value)
	case interval < least:
		return 0, fmt.Errorf("%s is too short: want at least %v", value, least)
	}
	return interval, nil
}

// isFlag reports whether an option has no value.
func isFlag(name string) bool { return strings.HasPrefix(name, "--") }

// optionForm returns the word of an option, without a value.
func optionForm(name string) string {
	if isFlag(name) {
		return name
	}
	return name + "="
}

func describeOptions(name, description string, options []Option) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: %s [OPTION]…\n\n", description, name)
	for _, o := range options {
		fmt.Fprintf(&b, "  %-12s %s\n", optionForm(o.Name), o.Description)
	}
	return b.String()
}
