// Package consent asks the user for a decision at the terminal: whether a server of a project may
// run, and other questions that are answered with yes or no.
package consent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/term"
)

// AskTrust shows a server of a project and asks whether it may run as the user. If the user agrees
// or yes is set, it stores the trust. Without a terminal, it shows how to allow the server.
// Answers are read from in.
func AskTrust(ctx context.Context, f *factory.Factory, source *configured.Source, u configured.Untrusted, in *term.Lines, yes bool) error {
	fmt.Fprintf(f.Stdout, "%s, from %s\n", f.Stdout.Bold(term.Line(u.Name)), u.At)
	facts := u.Facts
	if u.Before != nil {
		facts = config.TrustChange(u.Before, u.Facts)
	}
	for _, fact := range facts {
		fmt.Fprintln(f.Stdout, "  "+term.Line(fact))
	}
	switch {
	case yes:
	case term.Terminal(f.Stdin) == nil:
		fmt.Fprintln(f.Stdout, "  allow it on a terminal, or with: dowel trust "+term.Line(u.Name)+" --yes")
		return nil
	default:
		if agreed, err := Ask(ctx, f, in, "Allow it to run as you?"); err != nil || !agreed {
			return err
		}
	}
	if err := source.Trust(u.Name, u.Facts); err != nil {
		return err
	}
	fmt.Fprintln(f.Stdout, f.Stdout.Green("allowed"))
	return nil
}

// Ask asks the user a question and returns true if the answer is y or yes. The end of the input
// means no. The error is the cause of ctx if Ctrl-C ends the question.
func Ask(ctx context.Context, f *factory.Factory, in *term.Lines, question string) (bool, error) {
	fmt.Fprint(f.Stdout, question+" [y/N] ")
	answer, err := in.Next(ctx)
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(f.Stdout)
		return false, nil
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", err
}
