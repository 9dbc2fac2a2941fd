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
	app   *factory.Factory
	flags *Options
	show  *agentview.Renderer
	in    input
	term  *term.Console // nil without a terminal
	keys  *interrupts

	ctx context.Context
	end context.CancelCauseFunc

	work  sync.WaitGroup // assembling
	ready chan struct{}  // closed when the next two are set
	it    *agentcmd.Runtime
	wrong error

	kept    *session.Session // nil where nothing is kept
	next    *session.Session // that which begins with the first words; nil: none does
	before  []agent.Message  // of the session that is gone on with
	noted   bool             // the session says which model it is with
	mode    agent.Mode
	failed  error // what the last thing that was said came to
	release []func()
}

// input is where what the user says comes from.
type input interface {
	ReadLine(ctx context.Context, a term.Question) (string, error)
}

// piped is what a program says.
type piped struct{ lines *term.Lines }

func (p piped) ReadLine(ctx context.Context, _ term.Question) (string, error) {
	return p.lines.Next(ctx)
}

// newChat makes a conversation, and starts nothing.
func newChat(ctx context.Context, f *factory.Factory, opts *Options) (*conversation, error) {
	c := &conversation{app: f, flags: opts, ready: make(chan struct{})}
	c.mode, _ = modeOf(opts.approve) // checked before
	if err := c.recall(); err != nil {
		return nil, err
	}
	c.ctx, c.end = context.WithCancelCause(ctx)
	c.keys = &interrupts{end: func(cause error) { c.end(cause) }}
	in := term.Terminal(f.Stdin)
	if in == nil || !f.Stdout.IsTerminal() {
		c.in, c.show = piped{term.NewLines(f.Stdin)}, agentview.NewRenderer(f.Stdout, f.Stderr)
		opts.AwaitServers = true
	} else {
		c.occupy(in)
	}
	c.show.Verbose = f.Verbose
	return c, nil
}

// occupy takes the terminal: what is said from then on does not disturb what is typed.
func (c *conversation) occupy(in *os.File) {
	out, side := c.app.Stdout, c.app.Stderr
	c.term = term.NewConsole(in, out.File)
	c.term.Complete = c.complete
	c.in, c.show = c.term, agentview.NewRenderer(out, out)
	c.release = append(c.release, out.Divert(c.term))
	if side.IsTerminal() {
		c.release = append(c.release, side.Divert(beside{c.show}))
	}
	c.release = append(c.release, c.keys.listen())
}

// beside writes what is told on stderr into the conversation, on lines of its own.
type beside struct{ show *agentview.Renderer }

// Write implements [io.Writer].
func (b beside) Write(p []byte) (int, error) {
	b.show.Mu.Lock()
	defer b.show.Mu.Unlock()
	b.show.EndLine()
	return b.show.Side.Write(p)
}

// open begins: it greets, and assembles the agent meanwhile.
func (c *conversation) open() error {
	o, err := agentcmd.ClientOptions(c.app, &c.flags.Flags)
	if err != nil {
		return err
	}
	if err := c.answering(&o); err != nil {
		return err
	}
	options := agent.Options{Messages: c.before, MaxSteps: c.flags.steps, Mode: c.mode}
	if options.System, err = c.instructions(); err != nil {
		return err
	}
	switch {
	case c.kept != nil:
		options.Results = c.kept.Results()
	case c.next != nil:
		options.Results = c.next.Results()
	}
	if c.term != nil {
		options.Approve = c.approve
		c.show.Note("dowel %s: what you type goes to the model; /help says what else there is, Ctrl-D ends.", version.Number())
	}
	c.recapitulate()
	c.work.Go(func() {
		it, err := agentcmd.NewRuntime(c.ctx, c.app, &c.flags.Flags, options, o)
		c.it, c.wrong = it, err
		if err != nil {
			c.end(notAssembled{err}) // before anybody hears of it, who would tell it a second time
			close(c.ready)
			return
		}
		model := describeModel(it.Model)
		close(c.ready)
		if c.term != nil {
			c.greet(it, model)
		}
	})
	return nil
}

// notAssembled is the cause of a conversation's end that could not begin.
type notAssembled struct{ error }

// Unwrap keeps what kind of error it is.
func (e notAssembled) Unwrap() error { return e.error }

// instructions are what the model is told first.
func (c *conversation) instructions() (string, error) {
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
	return fmt.Sprintf(systemOfChat, here, runtime.GOOS, time.Now().Format("Monday, 2 January 2006")), err
}

const systemOfChat = `You talk with a user in a terminal, and have tools. Use them where they help, and say plainly what you did and found. The user may refuse a call: do not try to get around that. Answer in plain text; short Markdown is fine.
The current folder is %s, the system is %s, and today is %s.`

// answering sets what servers may ask the user.
func (c *conversation) answering(o *client.Options) error {
	answers, err := toolargs.ParseArguments(c.flags.Answers)
	if err != nil {
		return exit.Usagef("--answer: %w", err)
	}
	if c.term == nil && len(answers) == 0 {
		return nil
	}
	o.Answers.ElicitURL = c.term != nil
	o.Answers.Elicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return c.elicit(ctx, r, elicit.AnswersFor(r.Server, answers))
	}
	return nil
}

// assembled waits for the agent.
func (c *conversation) assembled(ctx context.Context) (*agentcmd.Runtime, error) {
	select {
	case <-c.ready:
	default:
		c.show.Side.SetStatus(c.show.Side.Dim("starting …"))
		defer c.show.Side.SetStatus("")
	}
	select {
	case <-c.ready:
		return c.it, c.wrong
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close ends what was started.
func (c *conversation) close() {
	c.keys.last()
	c.end(nil)
	c.work.Wait()
	c.show.Idle()
	if c.it != nil {
		c.it.Close()
	}
	if c.kept != nil {
		if err := c.kept.Close(); err != nil {
			c.app.Warn("%v", err)
		}
	}
	for i := range c.release {
		c.release[len(c.release)-1-i]()
	}
}

// why is the reason for which the conversation has ended.
func (c *conversation) why() error {
	err := context.Cause(c.ctx)
	var begun notAssembled
	if errors.As(err, &begun) {
		return begun.error
	}
	return err
}
