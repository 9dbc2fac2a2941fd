// Package serve is dowel serve: it serves a built-in server over standard input and output, or over
// HTTP.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/spf13/cobra"
)

// builtinNames returns the names of the built-in servers.
func builtinNames() []string { return builtin.Names() }

// NewCommand returns the command serve.
func NewCommand(f *factory.Factory) *cobra.Command {
	var opts options
	cmd := &cobra.Command{
		Use:   "serve SERVER [OPTION=VALUE]…",
		Short: "Serve a built-in server over standard input and output, or over HTTP",
		Long: `Serve a built-in server in every protocol revision. Without flags it is served over standard input and output, as the
child of a client, until the client closes standard input. With --http it is served over HTTP to any number of clients
until Ctrl-C: at /mcp (Streamable HTTP), for clients of 2024 at /sse (HTTP+SSE), and at /ws (WebSocket).

HTTP clients must send your token, which dowel status --token prints as a header. With --open they need none: then every
program and user of this machine may use the server, so files and shell can be open at a loopback address only. Requests
must address this machine by an IP address or localhost. Allow other names with --host; without this rule, web pages could
reach the server by a name of their own.

With --auth clients send access tokens of an OAuth authorization server instead of your token, and find it by themselves. Name
its issuer: --auth issuer=https://login.example.com. url is the address that clients use, if it is not the one of --http, as
behind a proxy with TLS; tokens must be for that address, or for an audience that you name. Every request needs the scopes
that you name with scope. dpop=offered or dpop=required binds tokens to a key of the client, and requireType=true refuses
signed tokens without the type at+jwt. Repeat issuer, audience and scope for more than one, separated by commas.

` + describeBuiltins() + "\n\n" + describePrograms(),
		Example: `  dowel serve files roots=. read-only=true
  dowel serve data roots=./tables
  dowel serve everything --http 8080
  dowel serve kv --http 8080 --auth issuer=https://login.example.com,url=https://kv.example.com`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeArgs(args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			return runServe(cmd.Context(), f, args, &opts)
		},
	}
	cmd.Flags().StringVar(&opts.Address, "http", "", "serve over HTTP at an `address`: 8080, or 0.0.0.0:8080 for other machines too")
	cmd.Flags().StringSliceVar(&opts.Hosts, "host", nil, "with --http, a `name` that requests may use for this machine; * allows any")
	cmd.Flags().StringSliceVar(&opts.Origins, "origin", nil, "with --http, an `origin` of web pages that may use the server, such as https://app.example.com; * allows any")
	cmd.Flags().BoolVar(&opts.open, "open", false, "with --http, serve every program and user of this machine, without a token")
	cmd.Flags().StringVar(&opts.dir, "dir", "", "the `folder` of the server, the same as its option dir=")
	cmd.Flags().BoolVar(&opts.allow, "allow", false, "with screen, take pictures without asking")
	cmd.Flags().StringVar(&opts.auth, "auth", "", "with --http, accept access tokens of an authorization server: `issuer=URL`[,url=URL][,audience=AUD][,scope=NAME][,dpop=offered][,requireType=true]")
	return cmd
}

// options are the flags of dowel serve.
type options struct {
	daemon.ListenOptions
	open  bool
	auth  string
	dir   string
	allow bool // of screen
}

// isLoopback reports whether only this machine can reach an address. The address must have a port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, notIP := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || notIP == nil && ip.Unmap().IsLoopback())
}

// describeBuiltins returns the help text for the servers and their options.
func describeBuiltins() string {
	var b strings.Builder
	for _, d := range builtin.Describe() {
		fmt.Fprintf(&b, "%s: %s\n", d.Name, d.Description)
		for _, o := range d.Options {
			fmt.Fprintf(&b, "  %-12s %s\n", o.Name+"=", o.Description)
		}
	}
	return strings.TrimSpace(b.String())
}

// completeArgs returns completions for the words after dowel serve.
func completeArgs(args []string) []string {
	if len(args) == 0 {
		return append(builtinNames(), programNames()...)
	}
	var all []string
	for _, d := range builtin.Describe() {
		for _, o := range d.Options {
			if d.Name == args[0] {
				all = append(all, o.Name+"=")
			}
		}
	}
	return all
}

func runServe(ctx context.Context, f *factory.Factory, args []string, opts *options) error {
	if len(args) == 0 {
		return exit.Usagef("no server is named: there are %s", strings.Join(append(builtinNames(), programNames()...), ", "))
	}
	if builtin.IsProgram(args[0]) {
		return runProgram(ctx, f, args[0], args[1:], opts)
	}
	if opts.allow {
		return exit.Usagef("--allow is for the server screen")
	}
	if opts.open && opts.Address != "" && daemon.IsLocal(args[0]) && !isLoopback(daemon.LocalAddress(opts.Address)) {
		return exit.Usagef("--open at %s: %s acts on this machine, and other machines could use it: serve it at 127.0.0.1, or without --open", opts.Address, args[0])
	}
	var auth config.GatewayAuth
	switch {
	case opts.auth == "":
	case opts.open:
		return exit.Usagef("--open lets everyone in, and --auth asks for access tokens: use one of them")
	default:
		var err error
		if auth, err = parseAuth(opts.auth); err != nil {
			return err
		}
	}
	words := args[1:]
	if opts.dir != "" {
		words = append(slices.Clip(words), "dir="+opts.dir)
	}
	options, err := builtin.ParseOptions(words)
	if err != nil {
		return exit.UsageError{Err: err}
	}
	s, err := builtin.New(args[0], options)
	if err != nil {
		if _, ok := errors.AsType[*builtin.OptionError](err); ok {
			return exit.UsageError{Err: err}
		}
		return err
	}
	defer s.Close()
	switch {
	case opts.Address != "":
		return serveHTTP(ctx, f, args[0], s, opts, auth)
	case len(opts.Hosts)+len(opts.Origins) > 0 || opts.open || auth.IsSet():
		return exit.Usagef("--host, --origin, --open and --auth need --http")
	}
	if term.Terminal(f.Stdin) != nil {
		f.Notice("Serving " + args[0] + ": reading JSON-RPC from this terminal; Ctrl-D stops it. Clients start it by themselves: dowel tools " + args[0])
	}
	return stdio.Serve(ctx, s, stdio.Options{ServerOptions: transport.ServerOptions{Logger: slog.New(f.LogHandler())}})
}
