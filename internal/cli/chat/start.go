package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/elicit"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
)

// conversation is a conversation of a user with an agent. What is below is the goroutine's that reads what the user says, but for what is
// assembled beside it.
type conversation struct {
	app        *factory.Factory
	flags      *Options
	view       *agentview.Renderer
	in         lineReader
	term       *term.Console // nil without a terminal
	interrupts *interruptHandler

	ctx    context.Context
	cancel context.CancelCauseFunc

	background   sync.WaitGroup // assembling
	runtimeReady chan struct{}  // closed when the next two are set
	runtime      *agentcmd.Runtime
	runtimeErr   error

	session         *session.Session // nil where nothing is kept
	pendingSession  *session.Session // that which begins with the first words; nil: none does
	resumedMessages []agent.Message  // of the session that is gone on with
	modelRecorded   bool             // the session says which model it is with
	mode            agent.Mode
	lastErr         error // what the last thing that was said came to
	cleanups        []func()
}

// lineReader is where what the user says comes from.
type lineReader interface {
	ReadLine(ctx context.Context, a term.Question) (string, error)
}

// pipedInput is what a program says.
type pipedInput struct{ lines *term.Lines }

func (p pipedInput) ReadLine(ctx context.Context, _ term.Question) (string, error) {
	return p.lines.Next(ctx)
}

// newConversation makes a conversation, and starts nothing.
func newConversation(ctx context.Context, f *factory.Factory, opts *Options) (*conversation, error) {
	c := &conversation{app: f, flags: opts, runtimeReady: make(chan struct{})}
	c.mode, _ = parseMode(opts.approve) // checked before
	if err := c.openSession(); err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.interrupts = &interruptHandler{endProgram: func(cause error) { c.cancel(cause) }}
	in := term.Terminal(f.Stdin)
	if in == nil || !f.Stdout.IsTerminal() {
		c.in, c.view = pipedInput{term.NewLines(f.Stdin)}, agentview.NewRenderer(f.Stdout, f.Stderr)
		opts.AwaitServers = true
	} else {
		c.takeTerminal(in)
	}
	c.view.Verbose = f.Verbose
	return c, nil
}

// takeTerminal takes the terminal: what is said from then on does not disturb what is typed.
func (c *conversation) takeTerminal(in *os.File) {
	out, side := c.app.Stdout, c.app.Stderr
	c.term = term.NewConsole(in, out.File)
	c.term.Complete = c.completeInput
	c.in, c.view = c.term, agentview.NewRenderer(out, out)
	c.cleanups = append(c.cleanups, out.Divert(c.term))
	if side.IsTerminal() {
		c.cleanups = append(c.cleanups, side.Divert(stderrWriter{c.view}))
	}
	c.cleanups = append(c.cleanups, c.interrupts.listenSignals())
}

// stderrWriter writes what is told on stderr into the conversation, on lines of its own.
type stderrWriter struct{ view *agentview.Renderer }

// Write implements [io.Writer].
func (b stderrWriter) Write(p []byte) (int, error) {
	b.view.Mu.Lock()
	defer b.view.Mu.Unlock()
	b.view.EndLine()
	return b.view.Side.Write(p)
}

// startRuntime begins: it greets, and assembles the agent meanwhile.
func (c *conversation) startRuntime() error {
	o, err := agentcmd.ClientOptions(c.app, &c.flags.Flags)
	if err != nil {
		return err
	}
	if err := c.configureElicitation(&o); err != nil {
		return err
	}
	options := agent.Options{Messages: c.resumedMessages, MaxSteps: c.flags.steps, Mode: c.mode}
	if options.System, err = c.readSystemPrompt(); err != nil {
		return err
	}
	switch {
	case c.session != nil:
		options.Results = c.session.Results()
	case c.pendingSession != nil:
		options.Results = c.pendingSession.Results()
	}
	if c.term != nil {
		options.Approve = c.askApproval
		c.view.Note("dowel %s: what you type goes to the model; /help says what else there is, Ctrl-D ends.", version.Number())
	}
	c.showLastExchange()
	c.background.Go(func() {
		it, err := agentcmd.NewRuntime(c.ctx, c.app, &c.flags.Flags, options, o)
		c.runtime, c.runtimeErr = it, err
		if err != nil {
			c.cancel(startError{err}) // before anybody hears of it, who would tell it a second time
			close(c.runtimeReady)
			return
		}
		model := describeModel(it.Model)
		close(c.runtimeReady)
		if c.term != nil {
			c.showStartup(it, model)
		}
	})
	return nil
}

// startError is the cause of a conversation's end that could not begin.
type startError struct{ error }

// Unwrap keeps what kind of error it is.
func (e startError) Unwrap() error { return e.error }

// readSystemPrompt are what the model is told first.
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
	here, err := connect.Folder(".")
	return fmt.Sprintf(defaultSystemPrompt, here, runtime.GOOS, time.Now().Format("Monday, 2 January 2006")), err
}

const defaultSystemPrompt = `You talk with a user in a terminal, and have tools. Use them where they help, and say plainly what you did and found. The user may refuse a call: do not try to get around that. Answer in plain text; short Markdown is fine.
The current folder is %s, the system is %s, and today is %s.`

// configureElicitation sets what servers may ask the user.
func (c *conversation) configureElicitation(o *client.Options) error {
	answers, err := toolargs.ParseArguments(c.flags.Answers)
	if err != nil {
		return exit.Usagef("--answer: %w", err)
	}
	if c.term == nil && len(answers) == 0 {
		return nil
	}
	o.Answers.ElicitURL = c.term != nil
	o.Answers.Elicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return c.answerElicitation(ctx, r, elicit.AnswersFor(r.Server, answers))
	}
	return nil
}

// awaitRuntime waits for the agent.
func (c *conversation) awaitRuntime(ctx context.Context) (*agentcmd.Runtime, error) {
	select {
	case <-c.runtimeReady:
	default:
		c.view.Side.SetStatus(c.view.Side.Dim("starting …"))
		defer c.view.Side.SetStatus("")
	}
	select {
	case <-c.runtimeReady:
		return c.runtime, c.runtimeErr
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close ends what was started.
func (c *conversation) close() {
	c.interrupts.markEnding()
	c.cancel(nil)
	c.background.Wait()
	c.view.Idle()
	if c.runtime != nil {
		c.runtime.Close()
	}
	if c.session != nil {
		if err := c.session.Close(); err != nil {
			c.app.Warn("%v", err)
		}
	}
	for i := range c.cleanups {
		c.cleanups[len(c.cleanups)-1-i]()
	}
}

// endCause is the reason for which the conversation has ended.
func (c *conversation) endCause() error {
	err := context.Cause(c.ctx)
	var begun startError
	if errors.As(err, &begun) {
		return begun.error
	}
	return err
}
