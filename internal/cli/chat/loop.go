package chat

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// errQuit is returned when the user ends the conversation.
var errQuit = errors.New("quit")

// runLoop reads and handles the user's input until the conversation ends.
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

// errLastFailed ends a piped conversation after its last message failed. The failure itself was
// already shown.
var errLastFailed = errors.New("the last message failed")

// endConversation returns the result of a conversation that the user ended.
func (c *conversation) endConversation() error {
	if !c.isInteractive() {
		if c.lastErr != nil {
			return errLastFailed
		}
		return nil
	}
	if c.log.Session != nil && c.screen == nil {
		c.view.Note("saved; continue with dowel chat --resume")
	}
	return nil
}

// readInput reads one message: a line, and the next line after each line that ends with \.
func (c *conversation) readInput() (string, error) {
	var lines []string
	prompt := c.out.Bold(">") + " "
	for {
		prefill := c.prefill
		c.prefill = ""
		text, err := c.in.ReadLine(c.ctx, term.Question{Prompt: prompt, Prefill: prefill})
		if errors.Is(err, term.ErrInterrupted) && text == "" && lines == nil && !c.interrupts.handlePress() {
			c.view.Note("Ctrl-D or /quit ends the conversation, and so does Ctrl-C twice")
		}
		if err == io.EOF && lines != nil {
			err = nil // the input ends after a line with \
		}
		if err != nil {
			return "", err
		}
		c.interrupts.forgetPress()
		more, continues := strings.CutSuffix(text, `\`)
		lines = append(lines, more)
		if !continues {
			return strings.Join(lines, "\n"), nil
		}
		prompt = c.out.Dim("…") + " "
	}
}

// handleInput runs a command or sends a message, and shows the error if it fails.
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
		if content, err = c.attachMentions(text); content != nil {
			err = c.sendMessage(content)
		}
	}
	if err != nil && !errors.Is(err, errQuit) && c.ctx.Err() == nil {
		c.view.Trouble(err)
	}
	return err
}

// sendMessage sends a message to the model, shows the run, and saves it to the session.
func (c *conversation) sendMessage(content []mcp.Content) error {
	ctx, done := c.interrupts.startWork(c.ctx)
	defer done()
	if c.term != nil {
		defer c.term.HideKeys()()
	}
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return c.reportStopped(ctx, err)
	}
	c.awaitServers(ctx, rt)
	if ctx.Err() != nil {
		return c.reportStopped(ctx, context.Cause(ctx))
	}
	if c.log.Session == nil && c.pendingSession != nil {
		c.pendingSession.With(rt.Model.Label())
		c.log.Session, c.pendingSession = c.pendingSession, nil
	}
	if c.detachSession == nil {
		c.attachSession()
	}
	c.lastInput = content
	c.followTasks(rt)
	c.log.BeginRun(content, rt.Model)
	stop := c.startTicker()
	var failed error
	for e, err := range rt.Run(ctx, content...) {
		if err != nil {
			failed = err
			continue
		}
		c.log.Event(e)
		c.view.Event(e)
	}
	stop()
	c.view.Idle()
	c.showContext(rt)
	c.log.EndRun(rt.Agent.Messages())
	return c.reportStopped(ctx, failed)
}

// reportStopped shows a note and returns nil if err came from Ctrl-C, and returns other errors.
func (c *conversation) reportStopped(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopped) && c.ctx.Err() == nil {
		c.view.Note("stopped; the conversation until then is kept")
		return nil
	}
	return err
}

// startTicker updates the status line every second until stop is called. stop waits for the last
// update.
func (c *conversation) startTicker() (stop func()) {
	if !c.side.IsTerminal() {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.view.Tick()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}
