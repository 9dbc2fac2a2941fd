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

// runLoop takes what the user says until there is no more.
func (c *conversation) runLoop() error {
	for {
		text, err := c.readInput()
		switch {
		case errors.Is(err, term.ErrInterrupted):
			continue
		case errors.Is(err, io.EOF):
			return c.endConversation()
		case c.ctx.Err() != nil:
			return c.endCause()
		case err != nil:
			return err
		}
		err = c.handleInput(text)
		switch {
		case errors.Is(err, errQuit):
			return c.endConversation()
		case c.ctx.Err() != nil:
			return c.endCause()
		}
		c.lastErr = err
	}
}

// errLastFailed is what a program's conversation comes to whose last words failed, which has been told.
var errLastFailed = errors.New("what was said last has failed")

// endConversation is the end that the user wants.
func (c *conversation) endConversation() error {
	if c.term == nil {
		if c.lastErr != nil {
			return errLastFailed
		}
		return nil
	}
	if c.session != nil {
		c.view.Note("kept; dowel chat --resume goes on with it")
	}
	return nil
}

// readInput reads what the user says: a line, and those after it while they end with \.
func (c *conversation) readInput() (string, error) {
	var lines []string
	prompt := c.view.Out.Bold(">") + " "
	for {
		text, err := c.in.ReadLine(c.ctx, term.Question{Prompt: prompt})
		if errors.Is(err, term.ErrInterrupted) && text == "" && lines == nil && !c.interrupts.handlePress() {
			c.view.Note("Ctrl-D or /quit ends the conversation, and so does Ctrl-C twice")
		}
		if err == io.EOF && lines != nil {
			err = nil // what is there is all
		}
		if err != nil {
			return "", err
		}
		c.interrupts.forgetPress()
		more, goesOn := strings.CutSuffix(text, `\`)
		lines = append(lines, more)
		if !goesOn {
			return strings.Join(lines, "\n"), nil
		}
		prompt = c.view.Out.Dim("…") + " "
	}
}

// handleInput does what the user says. An error has been shown.
func (c *conversation) handleInput(text string) error {
	var err error
	switch command, isCommand := strings.CutPrefix(strings.TrimSpace(text), "/"); {
	case strings.TrimSpace(text) == "":
		return c.lastErr
	case isCommand && !strings.HasPrefix(command, "/"):
		err = c.runCommand(command)
	default:
		if isCommand {
			text = command
		}
		var content []mcp.Content
		if content, err = c.attachMentions(text); err == nil {
			err = c.sendMessage(content)
		}
	}
	if err != nil && !errors.Is(err, errQuit) && c.ctx.Err() == nil {
		c.view.Trouble(err)
	}
	return err
}

// sendMessage says something to the model, and shows what comes of it.
func (c *conversation) sendMessage(content []mcp.Content) error {
	ctx, done := c.interrupts.startWork(c.ctx)
	defer done()
	it, err := c.awaitRuntime(ctx)
	if err != nil {
		return c.reportStopped(ctx, err)
	}
	if c.session == nil && c.pendingSession != nil {
		c.pendingSession.With(it.Model.Label())
		c.session, c.pendingSession = c.pendingSession, nil
	}
	c.updateSession(func(s *session.Session) error { return s.Message(agent.Message{Role: mcp.RoleUser, Content: content}) })
	c.recordModel(it.Model)
	stop := c.startTicker()
	var failed error
	for e, err := range it.Run(ctx, content...) {
		if err != nil {
			failed = err
			continue
		}
		c.recordEvent(e)
		c.view.Event(e)
	}
	stop()
	c.view.Idle()
	c.updateSession(func(s *session.Session) error { return s.Sync(it.Agent.Messages()) })
	return c.reportStopped(ctx, failed)
}

// reportStopped tells what the user has stopped from what went wrong.
func (c *conversation) reportStopped(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopped) && c.ctx.Err() == nil {
		c.view.Note("stopped; what was said until then is kept")
		return nil
	}
	return err
}

// startTicker shows that time passes while the model or a tool works.
func (c *conversation) startTicker() (stop func()) {
	if !c.view.Side.IsTerminal() {
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
				c.view.Tick()
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

// recordEvent keeps what happens, as it happens.
func (c *conversation) recordEvent(e agent.Event) {
	c.updateSession(func(s *session.Session) error {
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

// updateSession keeps something in the session. Where that fails, it is said once, and nothing is kept any more.
func (c *conversation) updateSession(do func(*session.Session) error) {
	if c.session == nil {
		return
	}
	if err := do(c.session); err != nil {
		c.app.Warn("%v", err)
		c.session = nil
	}
}

// recordModel keeps which model replies from now on: where one of the configuration's is, stands there.
func (c *conversation) recordModel(m modelregistry.Choice) {
	if !c.modelRecorded {
		c.modelRecorded = true
		c.updateSession(func(s *session.Session) error { return s.Note(modelEvent, newModelNote(m)) })
	}
}

// newModelNote is what a session says of a model.
func newModelNote(m modelregistry.Choice) modelNote {
	note := modelNote{Name: m.Name, Provider: m.Provider, Model: m.Model}
	if m.Name == "" {
		note.URL = urlmask.URL(m.URL)
	}
	return note
}
