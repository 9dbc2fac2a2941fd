package chat

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/elicit"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
)

// conversation is a conversation of a user with an agent. Its fields belong to the goroutine of
// runLoop, except runtime and runtimeErr before runtimeReady is closed.
type conversation struct {
	app        *factory.Factory
	flags      *Options
	view       chatView
	out, side  *term.Screen // the answer, and everything else
	in         lineReader
	term       *term.Console // nil without a terminal, and on the full screen
	screen     *fullScreen   // nil if the conversation is line by line
	interrupts *interruptHandler

	ctx    context.Context
	cancel context.CancelCauseFunc

	background   sync.WaitGroup // the goroutines of startRuntime and lookups
	lookups      *lookups       // for completions
	runtimeReady chan struct{}  // closed when runtime and runtimeErr are set
	runtime      *agentcmd.Runtime
	runtimeErr   error

	log             sessionlog.Log   // its session is nil if the conversation is not saved
	pendingSession  *session.Session // becomes log.Session with the first message; may be nil
	resumedMessages []agent.Message  // of the session of --resume
	startWarnings   []string         // about the session of --resume
	detachSession   func()           // nil while the running dowel is not told of a session
	awaitedServers  bool             // the first message has waited for starting servers
	mode            agent.Mode
	prefill         string        // of the next line, after /edit
	lastErr         error         // of the last command or message
	lastInput       []mcp.Content // the last message; nil if it is unknown
	cleanups        []func()      // called in reverse order when the conversation ends
}

// lineReader reads the user's input.
type lineReader interface {
	ReadLine(ctx context.Context, a term.Question) (string, error)
}

// pipedInput reads lines from a pipe or file.
type pipedInput struct{ lines *term.Lines }

// ReadLine implements [lineReader]. It shows no prompt.
func (p pipedInput) ReadLine(ctx context.Context, _ term.Question) (string, error) {
	return p.lines.Next(ctx)
}

// newConversation prepares a conversation and takes the terminal, if it has one. It does not start
// the agent.
func newConversation(ctx context.Context, f *factory.Factory, opts *Options) (*conversation, error) {
	c := &conversation{app: f, flags: opts, log: sessionlog.Log{Warn: f.Warn, Program: programName}, runtimeReady: make(chan struct{})}
	c.mode, _ = parseMode(opts.approve) // checkFlags validated it
	if err := c.openSession(ctx); err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.lookups = &lookups{ctx: c.ctx, start: c.background.Go, arrived: func() {}}
	c.interrupts = &interruptHandler{endProgram: func(cause error) { c.cancel(cause) }}
	in := term.Terminal(f.Stdin)
	switch {
	case in == nil || !f.Stdout.IsTerminal():
		c.in = pipedInput{term.NewLines(f.Stdin)}
		c.useLines(f.Stdout, f.Stderr)
		opts.AwaitServers = true
	case !opts.takesScreen():
		c.takeTerminal(in)
	default:
		c.takeScreen(in)
	}
	return c, nil
}

// takesScreen reports whether the conversation uses the whole terminal, which must be one.
// ACCESSIBLE is the variable that programs with forms of Charm read, too.
func (opts *Options) takesScreen() bool {
	return opts.screen && !opts.plain && os.Getenv("ACCESSIBLE") == "" && !isDumb()
}

// isDumb reports whether the terminal cannot move its cursor.
func isDumb() bool {
	name := os.Getenv("TERM")
	return name == "dumb" || name == "" && runtime.GOOS != "windows"
}

// useLines shows the conversation line by line.
func (c *conversation) useLines(out, side *term.Screen) *agentview.Renderer {
	r := agentview.NewRenderer(out, side)
	r.Verbose = c.app.IsVerbose()
	c.view, c.out, c.side = linesView{r}, out, side
	return r
}

// isInteractive reports whether a person is at a terminal.
func (c *conversation) isInteractive() bool { return c.term != nil || c.screen != nil }

// takeTerminal reads input with a line editor, and prints all output of the program above the line
// that the user types.
func (c *conversation) takeTerminal(in *os.File) {
	out, side := c.app.Stdout, c.app.Stderr
	c.term = term.NewConsole(in, out.File)
	c.term.Complete, c.lookups.arrived = c.completeInput, c.term.CompleteAgain
	c.in = c.term
	renderer := c.useLines(out, out)
	c.cleanups = append(c.cleanups, out.Divert(c.term))
	if side.IsTerminal() {
		c.cleanups = append(c.cleanups, side.Divert(stderrWriter{renderer}))
	}
	c.cleanups = append(c.cleanups, c.interrupts.listenSignals())
}

// stderrWriter writes standard error into the conversation, on separate lines.
type stderrWriter struct{ view *agentview.Renderer }

// Write implements [io.Writer].
func (b stderrWriter) Write(p []byte) (int, error) {
	b.view.Mu.Lock()
	defer b.view.Mu.Unlock()
	b.view.EndLine()
	return b.view.Side.Write(p)
}

// startRuntime starts the agent on another goroutine, and shows the beginning of the conversation
// meanwhile. awaitRuntime waits for the agent.
func (c *conversation) startRuntime() error {
	o, err := agentcmd.ClientOptions(c.app, &c.flags.Flags)
	if err != nil {
		return err
	}
	if err := c.configureElicitation(&o); err != nil {
		return err
	}
	options := agent.Options{Messages: c.resumedMessages, Limits: agent.Limits{MaxSteps: c.flags.steps}, Mode: c.mode}
	if options.System, err = c.readSystemPrompt(); err != nil {
		return err
	}
	options.Results = c.resultsFolder()
	setup, err := agentcmd.ReadSetup(c.app, &c.flags.Flags)
	if err != nil {
		return err // before the user types a message
	}
	setup.OnRequest = c.log.AddRequest
	if c.isInteractive() {
		options.Approve = c.askApproval
		c.view.Note("%s: what you type goes to the model; /help lists commands, Ctrl-D ends.", version.Title(version.Number()))
	}
	c.attachSession()
	c.showLastExchange()
	c.background.Go(func() {
		rt, err := setup.NewRuntime(c.ctx, c.app, &c.flags.Flags, options, o)
		c.runtime, c.runtimeErr = rt, err
		if err != nil {
			c.cancel(startError{err}) // before runtimeReady, so that a waiting command does not report the error too
			close(c.runtimeReady)
			return
		}
		model := describeModel(rt.Model)
		c.view.Model(rt.Model.Label())
		close(c.runtimeReady)
		if c.isInteractive() {
			c.showStartup(rt, model)
		}
		if c.screen != nil {
			c.watchServers(rt)
		}
	})
	return nil
}

// startError is the cause of a conversation that ended because its agent could not start.
type startError struct{ error }

// Unwrap returns the error of the start.
func (e startError) Unwrap() error { return e.error }

// readSystemPrompt returns the system prompt: the text or file of --system, or dowel's own.
func (c *conversation) readSystemPrompt() (string, error) {
	text := c.flags.system
	if file, at := strings.CutPrefix(text, "@"); at {
		read, err := os.ReadFile(file)
		if err != nil {
			return "", exit.Usagef("--system: %w", err)
		}
		return string(read), nil
	}
	if text != "" {
		return text, nil
	}
	return agentcmd.SystemPrompt("in a terminal")
}

// configureElicitation lets servers ask the user. Without a terminal they may ask only if --answer
// is given, and cannot ask to open a URL.
func (c *conversation) configureElicitation(o *client.Options) error {
	answers, err := toolargs.ParseArguments(c.flags.Answers)
	if err != nil {
		return exit.Usagef("--answer: %w", err)
	}
	if !c.isInteractive() && len(answers) == 0 {
		return nil
	}
	o.Answers.ElicitURL = c.isInteractive()
	o.Answers.Elicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return c.answerElicitation(ctx, r, elicit.AnswersFor(r.Server, answers))
	}
	return nil
}

// awaitRuntime waits until the agent has started, and returns the error if it could not.
func (c *conversation) awaitRuntime(ctx context.Context) (*agentcmd.Runtime, error) {
	select {
	case <-c.runtimeReady:
	default:
		c.view.Working("starting …")
		defer c.view.Working("")
	}
	select {
	case <-c.runtimeReady:
		return c.runtime, c.runtimeErr
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// awaitQuietly is awaitRuntime without a word to the user, for other goroutines.
func (c *conversation) awaitQuietly() (*agentcmd.Runtime, error) {
	select {
	case <-c.runtimeReady:
		return c.runtime, c.runtimeErr
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	}
}

// releaseParts stops the agent, saves the session, and returns the terminal.
func (c *conversation) releaseParts() {
	c.interrupts.markEnding()
	c.cancel(nil)
	c.background.Wait()
	c.view.Idle()
	if c.runtime != nil {
		c.runtime.Close()
	}
	c.log.Close()
	for i := range c.cleanups {
		c.cleanups[len(c.cleanups)-1-i]()
	}
}

// endCause returns the error that ended the conversation.
func (c *conversation) endCause() error {
	err := context.Cause(c.ctx)
	var failed startError
	if errors.As(err, &failed) {
		return failed.error
	}
	return err
}
