package chat

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/urlmask"
	"github.com/dowel-mcp/dowel/mcp"
)

// errQuit ends the conversation as the user wants.
var errQuit = errors.New("quit")

// loop takes what the user says until there is no more.
func (c *conversation) loop() error {
	for {
		text, err := c.said()
		switch {
		case errors.Is(err, term.ErrInterrupted):
			continue
		case errors.Is(err, io.EOF):
			return c.over()
		case c.ctx.Err() != nil:
			return c.why()
		case err != nil:
			return err
		}
		err = c.take(text)
		switch {
		case errors.Is(err, errQuit):
			return c.over()
		case c.ctx.Err() != nil:
			return c.why()
		}
		c.failed = err
	}
}

// errLastFailed is what a program's conversation comes to whose last words failed, which has been told.
var errLastFailed = errors.New("what was said last has failed")

// over is the end that the user wants.
func (c *conversation) over() error {
	if c.term == nil {
		if c.failed != nil {
			return errLastFailed
		}
		return nil
	}
	if c.kept != nil {
		c.show.Note("kept; dowel chat --resume goes on with it")
	}
	return nil
}

// said reads what the user says: a line, and those after it while they end with \.
func (c *conversation) said() (string, error) {
	var lines []string
	prompt := c.show.Out.Bold(">") + " "
	for {
		text, err := c.in.ReadLine(c.ctx, term.Question{Prompt: prompt})
		if errors.Is(err, term.ErrInterrupted) && text == "" && lines == nil && !c.keys.press() {
			c.show.Note("Ctrl-D or /quit ends the conversation, and so does Ctrl-C twice")
		}
		if err == io.EOF && lines != nil {
			err = nil // what is there is all
		}
		if err != nil {
			return "", err
		}
		c.keys.typed()
		more, goesOn := strings.CutSuffix(text, `\`)
		lines = append(lines, more)
		if !goesOn {
			return strings.Join(lines, "\n"), nil
		}
		prompt = c.show.Out.Dim("…") + " "
	}
}

// take does what the user says. An error has been shown.
func (c *conversation) take(text string) error {
	var err error
	switch command, isCommand := strings.CutPrefix(strings.TrimSpace(text), "/"); {
	case strings.TrimSpace(text) == "":
		return c.failed
	case isCommand && !strings.HasPrefix(command, "/"):
		err = c.command(command)
	default:
		if isCommand {
			text = command
		}
		var content []mcp.Content
		if content, err = c.mentions(text); err == nil {
			err = c.send(content)
		}
	}
	if err != nil && !errors.Is(err, errQuit) && c.ctx.Err() == nil {
		c.show.Trouble(err)
	}
	return err
}

// send says something to the model, and shows what comes of it.
func (c *conversation) send(content []mcp.Content) error {
	ctx, done := c.keys.during(c.ctx)
	defer done()
	it, err := c.assembled(ctx)
	if err != nil {
		return c.stopped(ctx, err)
	}
	if c.kept == nil && c.next != nil {
		c.next.With(it.Model.Label())
		c.kept, c.next = c.next, nil
	}
	c.keep(func(s *session.Session) error { return s.Message(agent.Message{Role: mcp.RoleUser, Content: content}) })
	c.noteModel(it.Model)
	stop := c.ticking()
	var failed error
	for e, err := range it.Run(ctx, content...) {
		if err != nil {
			failed = err
			continue
		}
		c.record(e)
		c.show.Event(e)
	}
	stop()
	c.show.Idle()
	c.keep(func(s *session.Session) error { return s.Sync(it.Agent.Messages()) })
	return c.stopped(ctx, failed)
}

// stopped tells what the user has stopped from what went wrong.
func (c *conversation) stopped(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopped) && c.ctx.Err() == nil {
		c.show.Note("stopped; what was said until then is kept")
		return nil
	}
	return err
}

// ticking shows that time passes while the model or a tool works.
func (c *conversation) ticking() (stop func()) {
	if !c.show.Side.IsTerminal() {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.show.Tick()
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// record keeps what happens, as it happens.
func (c *conversation) record(e agent.Event) {
	c.keep(func(s *session.Session) error {
		switch e := e.(type) {
		case agent.Replied:
			return s.Message(e.Message)
		case agent.CallEnded:
			return s.Result(e.Result)
		case agent.Compacted:
			return s.Note("compacted", map[string]int{"before": e.Before, "after": e.After})
		case agent.Approval:
			if e.By == agent.ByUser || !e.Allowed {
				return s.Note("decided", map[string]any{"call": e.Call.ID, "server": e.Server, "allowed": e.Allowed, "by": e.By, "reason": e.Reason})
			}
		}
		return nil
	})
}

// keep keeps something in the session. Where that fails, it is said once, and nothing is kept any more.
func (c *conversation) keep(do func(*session.Session) error) {
	if c.kept == nil {
		return
	}
	if err := do(c.kept); err != nil {
		c.app.Warn("%v", err)
		c.kept = nil
	}
}

// noteModel keeps which model replies from now on: where one of the configuration's is, stands there.
func (c *conversation) noteModel(m modelregistry.Choice) {
	if !c.noted {
		c.noted = true
		c.keep(func(s *session.Session) error { return s.Note(usedModel, noteOf(m)) })
	}
}

// noteOf is what a session says of a model.
func noteOf(m modelregistry.Choice) modelNote {
	note := modelNote{Name: m.Name, Provider: m.Provider, Model: m.Model}
	if m.Name == "" {
		note.URL = urlmask.URL(m.URL)
	}
	return note
}
