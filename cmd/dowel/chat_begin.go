package main

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
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// chat is a conversation of a user with an agent. What is below is the goroutine's that reads what the user says, but for what is
// assembled beside it.
type chat struct {
	app   *app
	flags *chatFlags
	show  *renderer
	in    input
	term  *console // nil without a terminal
	keys  *interrupts

	ctx context.Context
	end context.CancelCauseFunc

	work  sync.WaitGroup // assembling
	ready chan struct{}  // closed when the next two are set
	it    *assembled
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
	line(ctx context.Context, a ask) (string, error)
}

// piped is what a program says.
type piped struct{ lines *lines }

func (p piped) line(ctx context.Context, _ ask) (string, error) { return p.lines.next(ctx) }

// newChat makes a conversation, and starts nothing.
func (a *app) newChat(ctx context.Context, f *chatFlags) (*chat, error) {
	c := &chat{app: a, flags: f, ready: make(chan struct{})}
	c.mode, _ = modeOf(f.approve) // checked before
	if err := c.recall(); err != nil {
		return nil, err
	}
	c.ctx, c.end = context.WithCancelCause(ctx)
	c.keys = &interrupts{end: func(cause error) { c.end(cause) }}
	in := terminal(a.stdin)
	if in == nil || !a.stdout.isTerminal() {
		c.in, c.show = piped{newLines(a.stdin)}, newRenderer(a.stdout, a.stderr)
		f.settle = true
	} else {
		c.occupy(in)
	}
	c.show.verbose = a.verbose
	return c, nil
}

// occupy takes the terminal: what is said from then on does not disturb what is typed.
func (c *chat) occupy(in *os.File) {
	out, side := c.app.stdout, c.app.stderr
	c.term = newConsole(in, out.file)
	c.term.complete = c.complete
	c.in, c.show = c.term, newRenderer(out, out)
	c.release = append(c.release, out.divert(c.term))
	if side.isTerminal() {
		c.release = append(c.release, side.divert(beside{c.show}))
	}
	c.release = append(c.release, c.keys.listen())
}

// divert has a screen write to somebody else until it is told to go back.
func (s *screen) divert(to interface{ Write([]byte) (int, error) }) (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.w
	s.w = to
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.w = before
	}
}

// beside writes what is told on stderr into the conversation, on lines of its own.
type beside struct{ show *renderer }

// Write implements [io.Writer].
func (b beside) Write(p []byte) (int, error) {
	b.show.mu.Lock()
	defer b.show.mu.Unlock()
	b.show.endLine()
	return b.show.side.Write(p)
}

// open begins: it greets, and assembles the agent meanwhile.
func (c *chat) open() error {
	o, err := c.app.clientOptions(&c.flags.agentFlags)
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
		c.show.note("dowel %s: what you type goes to the model; /help says what else there is, Ctrl-D ends.", version())
	}
	c.recapitulate()
	c.work.Go(func() {
		it, err := c.app.assemble(c.ctx, &c.flags.agentFlags, options, o)
		c.it, c.wrong = it, err
		if err != nil {
			c.end(notAssembled{err}) // before anybody hears of it, who would tell it a second time
			close(c.ready)
			return
		}
		model := describeModel(it.model)
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
func (c *chat) instructions() (string, error) {
	text := c.flags.system
	if file, at := strings.CutPrefix(text, "@"); at {
		read, err := os.ReadFile(file)
		if err != nil {
			return "", usagef("--system: %w", err)
		}
		return string(read), nil
	}
	if text != "" {
		return text, nil
	}
	here, err := folder(".")
	return fmt.Sprintf(systemOfChat, here, runtime.GOOS, time.Now().Format("Monday, 2 January 2006")), err
}

const systemOfChat = `You talk with a user in a terminal, and have tools. Use them where they help, and say plainly what you did and found. The user may refuse a call: do not try to get around that. Answer in plain text; short Markdown is fine.
The current folder is %s, the system is %s, and today is %s.`

// answering sets what servers may ask the user.
func (c *chat) answering(o *client.Options) error {
	answers, err := parseArguments(c.flags.answers)
	if err != nil {
		return usagef("--answer: %w", err)
	}
	if c.term == nil && len(answers) == 0 {
		return nil
	}
	o.ElicitURL = c.term != nil
	o.Elicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return c.elicit(ctx, r, answersFor(r.Server, answers))
	}
	return nil
}

// assembled waits for the agent.
func (c *chat) assembled(ctx context.Context) (*assembled, error) {
	select {
	case <-c.ready:
	default:
		c.show.side.show(c.show.side.dim("starting …"))
		defer c.show.side.show("")
	}
	select {
	case <-c.ready:
		return c.it, c.wrong
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close ends what was started.
func (c *chat) close() {
	c.keys.last()
	c.end(nil)
	c.work.Wait()
	c.show.idle()
	if c.it != nil {
		c.it.close()
	}
	if c.kept != nil {
		if err := c.kept.Close(); err != nil {
			c.app.warn("%v", err)
		}
	}
	for i := range c.release {
		c.release[len(c.release)-1-i]()
	}
}

// why is the reason for which the conversation has ended.
func (c *chat) why() error {
	err := context.Cause(c.ctx)
	var begun notAssembled
	if errors.As(err, &begun) {
		return begun.error
	}
	return err
}
