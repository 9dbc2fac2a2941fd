// Package connect finds the server that a command line names and connects to it. A [Target] is such
// a server: one of the running daemon, of the configuration, built in, at a URL, or started by a
// command. A [Connection] holds the flags of a command that talks to one server; a command is made
// with [Connection.Command], which resolves the target, and does its work inside [Connection.Do],
// which dials, and closes all that it started.
//
// Lists are read raw ([ListTools], [Find]), so that --json shows exactly what a server sent.
package connect

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

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/elicit"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Connection holds the flags about how to talk to a server.
type Connection struct {
	*factory.Factory
	TargetFlags
	wire           bool
	revision       string
	ConnectTimeout time.Duration
	idleTimeout    time.Duration
	TotalTimeout   time.Duration
	log            string
	roots          []string
	Answers        []string
	sampleText     string
}

func (conn *Connection) AddFlags(cmd *cobra.Command) {
	conn.TargetFlags.AddFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&conn.wire, "wire", false, "show the frames on the wire on stderr, as they pass")
	flags.StringVar(&conn.revision, "revision", "", "speak this protocol `revision` (default: what the server speaks)")
	conn.AddCallFlags(flags, "the server's", "the server", "the server")
}

// AddCallFlags registers what all commands have that talk to servers. The words are for whose the messages are, who may work on folders, and
// one that asks.
func (conn *Connection) AddCallFlags(flags *pflag.FlagSet, whose, who, one string) {
	flags.DurationVar(&conn.ConnectTimeout, "connect-timeout", client.DefaultConnect, "how long starting and connecting may take; 0: no limit")
	flags.DurationVar(&conn.idleTimeout, "idle-timeout", 0, "how long a call may go on without a sign of life; 0: no limit")
	flags.DurationVar(&conn.TotalTimeout, "timeout", 0, "how long a call may take, without the time you take to answer; 0: no limit")
	flags.StringVar(&conn.log, "log", "", "show "+whose+" log messages from this `level` on (debug, info, warning, error …)")
	flags.StringArrayVar(&conn.roots, "root", nil, "a `folder` that "+who+" may work on (repeatable)")
	flags.StringArrayVar(&conn.Answers, "answer", nil, "answer a question of "+one+" (`key=value`, repeatable)")
	flags.StringVar(&conn.sampleText, "sample-text", "", "answer "+whose+" questions to a model with this `text`")
}

// New returns the flags of one command, at their zero values until the command line is read.
func New(f *factory.Factory) *Connection { return &Connection{Factory: f} }

// DialOptions makes a client's options of the flags.
func (conn *Connection) DialOptions(t Target) (client.Options, error) {
	if r := mcp.Revision(conn.revision); conn.revision != "" && !r.Known() {
		return client.Options{}, exit.Usagef("--revision %s: dowel speaks %v", conn.revision, mcp.Revisions())
	}
	o, err := conn.BaseOptions()
	if err != nil {
		return o, err
	}
	o.Name, o.Wire.Revision = t.Name, mcp.Revision(conn.revision)
	if len(t.Header) > 0 {
		o.HTTP.Header = func(context.Context) (http.Header, error) { return t.Header, nil }
	}
	t.applyDefinition(&o)
	if conn.wire {
		o.Wire.Tap = newWireLog(conn.Stderr, conn.JSON).logFrame
	}
	if WatchWire != nil {
		o.Wire.Tap = WatchWire(o.Wire.Tap)
	}
	return o, conn.setAnswers(&o, t)
}

// BaseOptions returns the options that the flags set. They do not answer questions of the server.
func (conn *Connection) BaseOptions() (client.Options, error) {
	o := client.Options{
		Info:     mcp.Implementation{Name: "dowel", Title: "dowel", Version: version.Number()},
		Limits:   client.Limits{Connect: Limit(conn.ConnectTimeout), Idle: conn.idleTimeout, Total: conn.TotalTimeout},
		Restart:  client.Restart{Max: -1},
		LogLevel: mcp.LoggingLevel(conn.log),
		Wire:     client.Wire{Verdicts: new(transport.Verdicts)}, // the outcome of a pinned revision must not count for other runs
		Logger:   slog.New(conn.LogHandler()),
	}
	if conn.log != "" {
		if o.LogLevel.Severity() < 0 {
			return o, exit.Usagef("--log %s: the levels are %v", conn.log, mcp.LoggingLevels)
		}
		o.OnLog = conn.showLog
	}
	if len(conn.roots) > 0 {
		roots, err := parseRoots(conn.roots)
		if err != nil {
			return o, err
		}
		o.Answers.Roots = client.FixedRoots(roots...)
	}
	if conn.sampleText != "" {
		o.Answers.Sample = conn.answerSample
	}
	return o, nil
}

// watchWire, where it is not nil, puts a tap in front of another, which may be nil: tests check what dowel sends with it.
var WatchWire func(transport.Tap) transport.Tap

// Limit turns the flags' 0 into the options' "no limit".
func Limit(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// setAnswers sets what the server may ask: what cannot be answered here is not offered.
func (conn *Connection) setAnswers(o *client.Options, t Target) error {
	answers, err := toolargs.ParseArguments(conn.Answers)
	if err != nil {
		return exit.Usagef("--answer: %w", err)
	}
	talk := term.Terminal(conn.Stdin) != nil && conn.Stderr.IsTerminal()
	if talk || len(answers) > 0 {
		q := &elicit.Asker{Out: conn.Stderr, Origin: t.Origin, Answers: answers, Warn: conn.Warn}
		if talk {
			q.In = term.NewLines(conn.Stdin)
		}
		o.Answers.Elicit, o.Answers.ElicitURL = q.Ask, talk
	}
	return nil
}

// answerSample answers for a model.
func (conn *Connection) answerSample(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		Role: mcp.RoleAssistant, Model: "dowel --sample-text", StopReason: "endTurn",
		Content: mcp.SamplingContent{mcp.Text(conn.sampleText)},
	}, nil
}

func parseRoots(folders []string) ([]mcp.Root, error) {
	var roots []mcp.Root
	for _, f := range folders {
		path, err := Folder(f)
		if err != nil {
			return nil, exit.Usagef("--root %s: %w", f, err)
		}
		slashed := filepath.ToSlash(path)
		if !strings.HasPrefix(slashed, "/") {
			slashed = "/" + slashed // C:/…
		}
		roots = append(roots, mcp.Root{URI: (&url.URL{Scheme: "file", Path: slashed}).String(), Name: filepath.Base(path)})
	}
	return roots, nil
}

// Do connects to the server, does something there, and ends the connection with all that was started for it.
func (conn *Connection) Do(ctx context.Context, t Target, do func(*client.Client) error) error {
	o, err := conn.DialOptions(t)
	if err != nil {
		return err
	}
	return conn.DoWithOptions(ctx, t, o, do)
}

func (conn *Connection) DoWithOptions(ctx context.Context, t Target, o client.Options, do func(*client.Client) error) error {
	if command, ok := t.Dial.(stdio.Command); ok && conn.Verbose {
		command.Stderr = conn.Stderr
		if conn.JSON {
			lines := &stderrLines{screen: conn.Stderr}
			defer lines.flush()
			command.Stderr = lines
		}
		t.Dial = command
	}
	if t.close != nil {
		defer t.close()
	}
	c, err := client.Dial(ctx, t.Dial, &o)
	if err != nil {
		return exit.ConnectError{Server: t.Label(), Err: Unwrapped(err)}
	}
	err = do(c)
	conn.Stderr.SetStatus("")
	if closing := c.Close(); err == nil && closing != nil {
		conn.Warn("%v", closing)
	}
	return err
}

// Unwrapped is the error of a dial without its first words, which name the server as programs do.
func Unwrapped(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// Request makes one request. name is what it is about, for errors.
func Request[P any](ctx context.Context, c *client.Client, method, name string, params P, o client.CallOptions) (json.RawMessage, error) {
	resp, err := client.Do(ctx, c, mcp.Method[P, mcp.Response]{Name: method}, params, o)
	var failed *client.CallError
	if errors.As(err, &failed) && failed.Name == "" {
		failed.Name = name
	}
	return resp.Raw, err
}

// Unreadable says that a server's result does not have its method's form.
func Unreadable(c *client.Client, method string, err error) error {
	return &client.CallError{Server: c.ServerInfo().Name, Method: method, Err: fmt.Errorf("the result cannot be read: %w", err)}
}

// Command makes a subcommand that talks to a server.
func (conn *Connection) Command(c *cobra.Command, do func(ctx context.Context, t Target, rest []string) error) *cobra.Command {
	conn.AddFlags(c)
	c.Args = cobra.ArbitraryArgs
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = conn.CompleteWords(listing{}, "")
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		conn.Parsed = true
		t, rest, err := conn.Resolve(cmd, args)
		if err != nil {
			return err
		}
		return do(cmd.Context(), t, rest)
	}
	return c
}
