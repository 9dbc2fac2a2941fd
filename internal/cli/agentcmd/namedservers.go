package agentcmd

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
)

// openNamedServers starts a hub for the named servers alone. The hub ends with the command.
func openNamedServers(ctx context.Context, f *factory.Factory, opts *Flags, s *environment, definitions []hub.Definition) (*serverSet, error) {
	logger := slog.New(f.LogHandler())
	info := mcp.Implementation{Name: "dowel", Title: "dowel", Version: version.Number()}
	recorder := newHubRecorder(definitions)
	h := hub.New(&hub.Options{Info: info, Watch: configured.WatchFiles, DialContext: recorder.dialContext, Logger: logger})
	g := gateway.New(h, &gateway.Options{Info: info, Logger: logger, StartWait: -1})
	var work sync.WaitGroup
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	if f.IsVerbose() {
		lines := h.Events(watching, hub.StderrWritten)
		work.Go(func() {
			for e := range lines {
				showStderr(f, e)
			}
		})
	}
	h.Apply(definitions, "it is named on the command line")
	c := &serverSet{handler: g, isPrivate: true, sources: map[string]string{}}
	for _, d := range definitions {
		c.sources[d.Name] = d.Source
	}
	log, err := s.openAudit()
	if err != nil {
		f.Warn("%v", err)
	}
	if log != nil {
		c.handler = mcp.Chain(g, gateway.Audit(log, s.auditOptions(f)))
	}
	c.listServers = func(context.Context) ([]Server, error) { return control.DescribeAll(h), nil }
	c.restart = func(_ context.Context, server string) error { return restartNamed(h, server) }
	c.accept = acceptIn(h)
	c.followFrames = recorder.followFrames
	c.close = func(context.Context) {
		g.Close()
		h.Close()
		recorder.Close()
		stop()
		work.Wait()
		if log != nil {
			log.Close()
		}
	}
	if opts.AwaitServers {
		if err := awaitNamed(ctx, f, h, opts); err != nil {
			c.close(ctx)
			return nil, err
		}
	}
	return c, nil
}

// showStderr writes a line of a server's stderr, with the server's name.
func showStderr(f *factory.Factory, e hub.Event) {
	if f.JSON {
		factory.WriteJSONLine(f.Stderr, map[string]any{"server": e.Upstream, "stderr": e.Line})
		return
	}
	fmt.Fprintf(f.Stderr, "%s %s\n", f.Stderr.Dim(term.Line(e.Upstream)+":"), f.Stderr.Clean(e.Line))
}

// awaitNamed waits until the named servers are ready, at most for --connect-timeout for all of
// them. The time of installs counts only if the flag is given. A server that does not become ready
// is an error.
func awaitNamed(ctx context.Context, f *factory.Factory, h *hub.Hub, opts *Flags) error {
	limit := opts.ConnectTimeout
	waiting, cancel := context.WithTimeout(ctx, connectLimit(limit))
	defer cancel()
	defer f.Stderr.SetStatus("")
	for _, u := range h.Upstreams() {
		showStatus(f, "waiting for "+term.Line(u.Name()))
		u.Settle(waiting)
		if !opts.IsWaitLimited() {
			connect.AwaitInstalls(ctx, h, func(text string) { showStatus(f, text) })
			if waiting.Err() != nil {
				u.Settle(ctx)
			}
		}
		state := u.State()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case state.Status == hub.Ready, state.Status == hub.Stopped:
		case state.Diagnosis != nil && state.Diagnosis.Advice != "":
			return exit.ConnectError{Server: u.Name(), Err: fmt.Errorf("%s; %s", state.Diagnosis.Summary, state.Diagnosis.Advice)}
		case state.Err != nil:
			return exit.ConnectError{Server: u.Name(), Err: state.Err}
		case state.Status == hub.Starting:
			return exit.ConnectError{Server: u.Name(), Err: fmt.Errorf("it was not ready within %v: %w", connectLimit(limit), context.DeadlineExceeded)}
		default:
			return exit.ConnectError{Server: u.Name(), Err: fmt.Errorf("it %s: %s", connect.StatusWords(state.Status), state.Cause)}
		}
	}
	return nil
}

// connectLimit returns the limit of --connect-timeout, where 0 means no limit.
func connectLimit(d time.Duration) time.Duration {
	if d <= 0 {
		return 1 << 62
	}
	return d
}

// namedDefinitions returns the servers of --server, --url and the command after --. The list is
// empty if the flags name no server.
func namedDefinitions(f *factory.Factory, opts *Flags) (all []hub.Definition, err error) {
	if err := opts.checkFlags(); err != nil {
		return nil, err
	}
	for _, name := range opts.Servers {
		d, err := definitionByName(f, opts, name)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	var t connect.Target
	switch {
	case opts.TargetFlags.Url != "":
		t, err = opts.ByURL()
		t.Name = nameFromURL(opts.TargetFlags.Url)
	case len(opts.command) > 0:
		t, err = opts.Started(opts.command)
		t.Name = nameFromCommand(opts.command)
	default:
		return all, nil
	}
	d := opts.newDefinition(t)
	for n := 2; slices.ContainsFunc(all, func(o hub.Definition) bool { return o.Name == d.Name }); n++ {
		d.Name = fmt.Sprintf("%s%d", t.Name, n)
	}
	return append(all, d), err
}

// checkFlags returns a usage error for flags that contradict each other.
func (opts *Flags) checkFlags() error {
	for i, name := range opts.Servers {
		if slices.Contains(opts.Servers[:i], name) {
			return exit.Usagef("--server %s is given twice", name)
		}
	}
	switch given := len(opts.Servers) > 0; {
	case len(opts.Headers) > 0 && opts.TargetFlags.Url == "":
		return exit.Usagef("--header is for servers at a --url")
	case opts.TargetFlags.Url != "" && len(opts.command) > 0:
		return exit.Usagef("--url and a command after -- exclude each other: add one of them to your configuration, and name it with --server")
	case len(opts.BuiltinOptions) > 0 && (len(opts.Servers) != 1):
		return exit.Usagef("--option is for one built-in server: name only that one with --server")
	case given && len(opts.command) == 0 && (len(opts.Env) > 0 || opts.Dir != "") && len(opts.Servers) > 1:
		return exit.Usagef("--env and --dir are for one server: name only that one with --server")
	}
	return nil
}

// definitionByName returns the definition of a server of the running dowel, of the configuration,
// or of a built-in server.
func definitionByName(f *factory.Factory, opts *Flags, name string) (hub.Definition, error) {
	if opts.Found == nil && (len(opts.Files) > 0 || opts.Project != "") {
		definitions, err := f.Definitions(opts.Places)
		if err != nil {
			return hub.Definition{}, err
		}
		opts.Found = connect.NewDirectory(definitions)
	}
	d := opts.Directory()
	if !slices.Contains(d.Known(), name) {
		if strings.Contains(name, ",") {
			return hub.Definition{}, exit.Usagef("no server is called %s; repeat the flag for several servers: --server %s", name, strings.ReplaceAll(name, ",", " --server "))
		}
		return hub.Definition{}, exit.Usagef("no server is called %s%s", name, suggest.Hint(name, d.Known()))
	}
	w := opts.TargetFlags
	if len(opts.command) > 0 { // then --env and --dir belong to the command
		w.Env, w.Dir = nil, ""
	}
	t, err := w.ByName(name)
	if err != nil {
		return hub.Definition{}, err
	}
	if own, ok := d.Definitions[name]; ok && len(opts.BuiltinOptions) == 0 {
		return own, nil
	}
	def := opts.newDefinition(t)
	def.Source = d.Source(name)
	return def, nil
}

// restartNamed restarts a server of a hub.
func restartNamed(h *hub.Hub, server string) error {
	if u := h.Upstream(server); u != nil {
		u.Restart("requested by the user")
		return nil
	}
	var known []string
	for _, u := range h.Upstreams() {
		known = append(known, u.Name())
	}
	return exit.Usagef("no server is called %s%s", server, suggest.Hint(server, known))
}

// newDefinition returns the definition of a target as a server of a hub.
func (opts *Flags) newDefinition(t connect.Target) hub.Definition {
	d := hub.Definition{Name: t.Name, Target: t.Dial, Origin: t.Origin, Source: connect.CommandLine, Fingerprint: connect.CommandLine, Options: t.Options}
	d.Options.Limits.Connect = connect.Limit(opts.ConnectTimeout)
	if connect.WatchWire != nil {
		d.Options.Wire.Tap = connect.WatchWire(nil)
	}
	if len(t.Header) > 0 {
		d.Options.HTTP.Header = func(context.Context) (http.Header, error) { return t.Header, nil }
	}
	return d
}
