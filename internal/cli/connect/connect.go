// Package connect finds the server that a command line names and connects to it. A [Target] is such
// a server: one of the running daemon, of the configuration, built in, at a URL, or started by a
// command. A [Connection] holds the flags of a command that talks to one server.
// [Connection.Command] makes the command and resolves the target. The command does its work inside
// [Connection.Do], which connects to the target and afterwards stops all that it started.
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
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Connection holds the flags of one command that talks to a server. Make it with [New]; the fields
// are valid after the command line has been read. It is not safe for concurrent use.
type Connection struct {
	*factory.Factory
	TargetFlags
	wire           string   // the filter of --wire, wireAll for all frames, or "" without the flag
	wireLog        *wireLog // nil without --wire
	revision       string
	ConnectTimeout time.Duration
	idleTimeout    time.Duration
	TotalTimeout   time.Duration
	log            string
	roots          []string
	Answers        []string
	sampleText     string
	flags          *pflag.FlagSet
	stdinLines     *term.Lines // of the terminal; nil until it is read
}

// AddFlags registers the flags of a command that talks to one server.
func (conn *Connection) AddFlags(cmd *cobra.Command) {
	conn.TargetFlags.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&conn.wire, "wire", "", "show the messages on the wire on stderr, as they pass, also between the running dowel and its server; --wire=`FILTER` as in dowel wire")
	flags.Lookup("wire").NoOptDefVal = wireAll
	flags.StringVar(&conn.revision, "revision", "", "speak this protocol `revision` (default: what the server speaks)")
	conn.AddCallFlags(flags, "the server's", "the server", "the server")
}

// AddCallFlags registers the flags that all commands with connections share. The last three
// parameters complete the help texts: "show POSSESSIVE log messages", "a folder that SUBJECT may
// work on", "a question of ASKER".
func (conn *Connection) AddCallFlags(flags *pflag.FlagSet, possessive, subject, asker string) {
	conn.flags = flags
	flags.DurationVar(&conn.ConnectTimeout, "connect-timeout", time.Minute, "how long starting and connecting may take; if given, with the time of an install; 0: no limit")
	flags.DurationVar(&conn.idleTimeout, "idle-timeout", 0, "how long a call may take between two messages of the server; 0: no limit")
	flags.DurationVar(&conn.TotalTimeout, "timeout", 0, "how long a call may take, without the time you take to answer; 0: no limit")
	flags.StringVar(&conn.log, "log", "", "show "+possessive+" log messages from this `level` on (debug, info, warning, error …)")
	flags.StringArrayVar(&conn.roots, "root", nil, "a `folder` that "+subject+" may work on (repeatable)")
	flags.StringArrayVar(&conn.Answers, "answer", nil, "answer a question of "+asker+" (`key=value`, repeatable)")
	flags.StringVar(&conn.sampleText, "sample-text", "", "answer "+possessive+" questions to a model with this `text`")
}

// New returns the flags of one command. They have their zero values until the command line is read.
func New(f *factory.Factory) *Connection { return &Connection{Factory: f} }

// DialOptions returns the client options for t, from the flags and from the server's definition,
// with the functions that answer the server's questions. The error is a usage error.
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
	if err := conn.addUserLogin(&o, t); err != nil {
		return o, err
	}
	if conn.wire != "" {
		if conn.wireLog, err = newWireLog(conn.Stderr, conn.JSON, conn.wire, t.Name); err != nil {
			return o, err
		}
		o.Wire.Tap = conn.wireLog.logFrame
	}
	if WatchWire != nil {
		o.Wire.Tap = WatchWire(o.Wire.Tap)
	}
	return o, conn.setAnswers(&o, t)
}

// BaseOptions returns the client options that the flags set, without answers to elicitation. The
// error is a usage error.
func (conn *Connection) BaseOptions() (client.Options, error) {
	o := client.Options{
		Info:     mcp.Implementation{Name: "dowel", Title: "dowel", Version: version.Number()},
		Limits:   client.Limits{Connect: Limit(conn.ConnectTimeout), Idle: conn.idleTimeout, Total: conn.TotalTimeout},
		Restart:  client.Restart{Max: -1},
		LogLevel: mcp.LoggingLevel(conn.log),
		Wire:     client.Wire{Verdicts: new(transport.Verdicts)}, // not the shared ones: a pinned revision says nothing about later dials
		Logger:   slog.New(conn.LogHandler()),
	}
	if conn.log != "" {
		if o.LogLevel.Severity() < 0 {
			return o, exit.Usagef("--log %s: the levels are %v", conn.log, mcpwire.LoggingLevels())
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

// WatchWire wraps the wire tap of every connection if it is not nil; the given tap may be nil.
// Tests set it to check the messages that dowel sends.
var WatchWire func(transport.Tap) transport.Tap

// Limit converts the value of a flag to the value of a client option. No limit is 0 in the flag and
// a negative value in the option.
func Limit(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// setAnswers enables elicitation if the command has a terminal or --answer. Otherwise the client
// does not declare the capability.
func (conn *Connection) setAnswers(o *client.Options, t Target) error {
	answers, err := toolargs.ParseArguments(conn.Answers)
	if err != nil {
		return exit.Usagef("--answer: %w", err)
	}
	talk := conn.IsAttended()
	if talk || len(answers) > 0 {
		q := &elicit.Asker{Out: conn.Stderr, Origin: t.Origin, Answers: answers, Warn: conn.Warn}
		if talk {
			q.In = conn.openStdin()
		}
		o.Answers.Elicit, o.Answers.ElicitURL = q.Ask, talk
	}
	return nil
}

// openStdin returns the reader of stdin's lines. Questions of the server and logins share it, so
// that none takes a line of the other.
func (conn *Connection) openStdin() *term.Lines {
	if conn.stdinLines == nil {
		conn.stdinLines = term.NewLines(conn.Stdin)
	}
	return conn.stdinLines
}

// addUserLogin lets a user at a terminal log in at a --url without credentials.
func (conn *Connection) addUserLogin(o *client.Options, t Target) error {
	at, isURL := t.Dial.(string)
	if !isURL || t.Options.HTTP.Client == nil || !conn.IsAttended() {
		return nil
	}
	login, err := configured.NewURLLogin(at, conn.OpenLogins(), conn.UserLogin(conn.openStdin()))
	if err != nil {
		return err
	}
	o.HTTP.Client = &http.Client{Transport: login}
	return nil
}

// answerSample answers a sampling request with the text of --sample-text.
func (conn *Connection) answerSample(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		Role: mcp.RoleAssistant, Model: "dowel --sample-text", StopReason: "endTurn",
		Content: mcp.SamplingContent{mcp.Text(conn.sampleText)},
	}, nil
}

// parseRoots returns the folders as roots with file URIs.
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

// Do connects to t, calls do, and closes the connection with everything that it started for it.
func (conn *Connection) Do(ctx context.Context, t Target, do func(*client.Client) error) error {
	o, err := conn.DialOptions(t)
	if err != nil {
		return err
	}
	return conn.DoWithOptions(ctx, t, o, do)
}

// DoWithOptions is [Connection.Do] with client options other than [Connection.DialOptions].
func (conn *Connection) DoWithOptions(ctx context.Context, t Target, o client.Options, do func(*client.Client) error) error {
	if command, ok := t.Dial.(stdio.Command); ok && conn.IsVerbose() {
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
	defer conn.followServer(ctx, t)()
	c, err := conn.dial(ctx, t, o)
	if err != nil {
		return exit.ConnectError{Server: t.Label(), Err: Unwrapped(err), Doctor: t.CommandLine("doctor", "")}
	}
	err = do(c)
	conn.Stderr.SetStatus("")
	if closing := c.Close(); err == nil && closing != nil {
		conn.Warn("%v", closing)
	}
	return err
}

// followServer shows the frames between the running dowel and its server t too if --wire is given.
// The caller calls stop when the connection is closed.
func (conn *Connection) followServer(ctx context.Context, t Target) (stop func()) {
	if conn.wireLog == nil || t.running == nil {
		return func() {}
	}
	conn.wireLog.nameLegs()
	stop, err := t.running.FollowFrames(ctx, t.Name, conn.wireLog.logFarFrame)
	if err != nil {
		conn.Warn("the messages between the running dowel and %s are not shown: %v", t.Name, err)
		return func() {}
	}
	return stop
}

// Unwrapped returns the error of a dial without its prefix. The prefix names the server, and
// [exit.ConnectError] names it again.
func Unwrapped(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// Request sends one request and returns the raw result. name is the tool, prompt or resource of the
// request, for error messages.
func Request[P any](ctx context.Context, c *client.Client, method, name string, params P, o client.CallOptions) (json.RawMessage, error) {
	resp, err := client.Do(ctx, c, mcp.Method[P, mcp.Response]{Name: method}, params, o)
	var failed *client.CallError
	if errors.As(err, &failed) && failed.Name == "" {
		failed.Name = name
	}
	return resp.Raw, err
}

// Unreadable returns the error for a result that cannot be decoded as a result of method.
func Unreadable(c *client.Client, method string, err error) error {
	return &client.CallError{Server: c.Server().Info.Name, Method: method, Err: fmt.Errorf("the result cannot be read: %w", err)}
}

// Command adds flags, completion and RunE to c. RunE resolves the target and calls do with the
// words that follow the server on the command line. It returns c.
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
