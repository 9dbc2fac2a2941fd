package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// connection holds the flags about how to talk to a server.
type connection struct {
	*app
	whence
	wire       bool
	revision   string
	connect    time.Duration
	idle       time.Duration
	total      time.Duration
	log        string
	roots      []string
	answers    []string
	sampleText string
}

func (c *connection) register(cmd *cobra.Command) {
	c.whence.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&c.wire, "wire", false, "show the frames on the wire on stderr, as they pass")
	flags.StringVar(&c.revision, "revision", "", "speak this protocol `revision` (default: what the server speaks)")
	c.talk(flags, "the server's", "the server", "the server")
}

// talk registers what all commands have that talk to servers. The words are for whose the messages are, who may work on folders, and
// one that asks.
func (c *connection) talk(flags *pflag.FlagSet, whose, who, one string) {
	flags.DurationVar(&c.connect, "connect-timeout", client.DefaultConnect, "how long starting and connecting may take; 0: no limit")
	flags.DurationVar(&c.idle, "idle-timeout", 0, "how long a call may go on without a sign of life; 0: no limit")
	flags.DurationVar(&c.total, "timeout", 0, "how long a call may take, without the time you take to answer; 0: no limit")
	flags.StringVar(&c.log, "log", "", "show "+whose+" log messages from this `level` on (debug, info, warning, error …)")
	flags.StringArrayVar(&c.roots, "root", nil, "a `folder` that "+who+" may work on (repeatable)")
	flags.StringArrayVar(&c.answers, "answer", nil, "answer a question of "+one+" (`key=value`, repeatable)")
	flags.StringVar(&c.sampleText, "sample-text", "", "answer "+whose+" questions to a model with this `text`")
}

// newConnection returns the flags of one command, at their zero values until the command line is read.
func newConnection(a *app) *connection { return &connection{app: a} }

// dialOptions makes a client's options of the flags.
func (a *connection) dialOptions(t target) (client.Options, error) {
	if r := mcp.Revision(a.revision); a.revision != "" && !r.Known() {
		return client.Options{}, usagef("--revision %s: dowel speaks %v", a.revision, mcp.Revisions())
	}
	o, err := a.talkOptions()
	if err != nil {
		return o, err
	}
	o.Name, o.Revision = t.name, mcp.Revision(a.revision)
	if len(t.header) > 0 {
		o.Header = func(context.Context) (http.Header, error) { return t.header, nil }
	}
	t.extend(&o)
	if a.wire {
		o.Tap = newWire(a.stderr, a.json).tap
	}
	if watchWire != nil {
		o.Tap = watchWire(o.Tap)
	}
	return o, a.answerWith(&o, t)
}

// talkOptions are those of the flags of talk, but for who answers questions to the user.
func (a *connection) talkOptions() (client.Options, error) {
	o := client.Options{
		Info:     mcp.Implementation{Name: "dowel", Title: "dowel", Version: version()},
		Connect:  limit(a.connect),
		Idle:     a.idle,
		Total:    a.total,
		Restart:  client.Restart{Max: -1},
		LogLevel: mcp.LoggingLevel(a.log),
		Verdicts: new(transport.Verdicts), // what a pinned revision comes to is no verdict for another run
		Logger:   slog.New(a.notices()),
	}
	if a.log != "" {
		if o.LogLevel.Severity() < 0 {
			return o, usagef("--log %s: the levels are %v", a.log, mcp.LoggingLevels)
		}
		o.OnLog = a.showLog
	}
	if len(a.roots) > 0 {
		roots, err := rootsOf(a.roots)
		if err != nil {
			return o, err
		}
		o.Roots = client.FixedRoots(roots...)
	}
	if a.sampleText != "" {
		o.Sample = a.sample
	}
	return o, nil
}

// watchWire, where it is not nil, puts a tap in front of another, which may be nil: tests check what dowel sends with it.
var watchWire func(transport.Tap) transport.Tap

// limit turns the flags' 0 into the options' "no limit".
func limit(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// answerWith sets what the server may ask: what cannot be answered here is not offered.
func (a *connection) answerWith(o *client.Options, t target) error {
	answers, err := parseArguments(a.answers)
	if err != nil {
		return usagef("--answer: %w", err)
	}
	talk := terminal(a.stdin) != nil && a.stderr.isTerminal()
	if talk || len(answers) > 0 {
		q := &questions{out: a.stderr, origin: t.origin, answers: answers, warn: a.warn}
		if talk {
			q.in = newLines(a.stdin)
		}
		o.Elicit, o.ElicitURL = q.ask, talk
	}
	return nil
}

// sample answers for a model.
func (a *connection) sample(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		Role: mcp.RoleAssistant, Model: "dowel --sample-text", StopReason: "endTurn",
		Content: mcp.SamplingContent{mcp.Text(a.sampleText)},
	}, nil
}

func rootsOf(folders []string) ([]mcp.Root, error) {
	var roots []mcp.Root
	for _, f := range folders {
		path, err := folder(f)
		if err != nil {
			return nil, usagef("--root %s: %w", f, err)
		}
		slashed := filepath.ToSlash(path)
		if !strings.HasPrefix(slashed, "/") {
			slashed = "/" + slashed // C:/…
		}
		roots = append(roots, mcp.Root{URI: (&url.URL{Scheme: "file", Path: slashed}).String(), Name: filepath.Base(path)})
	}
	return roots, nil
}

// with connects to the server, does something there, and ends the connection with all that was started for it.
func (a *connection) with(ctx context.Context, t target, do func(*client.Client) error) error {
	o, err := a.dialOptions(t)
	if err != nil {
		return err
	}
	return a.withOptions(ctx, t, o, do)
}

func (a *connection) withOptions(ctx context.Context, t target, o client.Options, do func(*client.Client) error) error {
	if command, ok := t.dial.(stdio.Command); ok && a.verbose {
		command.Stderr = a.stderr
		if a.json {
			lines := &stderrLines{screen: a.stderr}
			defer lines.flush()
			command.Stderr = lines
		}
		t.dial = command
	}
	if t.close != nil {
		defer t.close()
	}
	c, err := client.Dial(ctx, t.dial, o)
	if err != nil {
		return connectError{t.label(), bare(err)}
	}
	err = do(c)
	a.stderr.show("")
	if closing := c.Close(); err == nil && closing != nil {
		a.warn("%v", closing)
	}
	return err
}

// bare is the error of a dial without its first words, which name the server as programs do.
func bare(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// request makes one request. name is what it is about, for errors.
func request[P any](ctx context.Context, c *client.Client, method, name string, params P, o client.CallOptions) (json.RawMessage, error) {
	resp, err := client.Do(ctx, c, mcp.Method[P, mcp.Response]{Name: method}, params, o)
	var failed *client.CallError
	if errors.As(err, &failed) && failed.Name == "" {
		failed.Name = name
	}
	return resp.Raw, err
}

// unreadable says that a server's result does not have its method's form.
func unreadable(c *client.Client, method string, err error) error {
	return &client.CallError{Server: c.ServerInfo().Name, Method: method, Err: fmt.Errorf("the result cannot be read: %w", err)}
}
