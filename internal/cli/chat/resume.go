package chat

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// openSession loads the session of --resume, or prepares a new one, which is created with the first
// message.
func (c *conversation) openSession(ctx context.Context) error {
	folder, err := connect.Folder(".")
	if err != nil {
		return err
	}
	if c.flags.resume == "" {
		if !c.flags.noSave && factory.SessionsDir() != "" {
			c.pendingSession = session.New(factory.SessionsDir(), session.Header{Folder: folder})
			c.flags.Session = c.pendingSession
		}
		return nil
	}
	one, err := findResumed(c.flags.resume, folder, c.warnAtStart)
	if err != nil {
		return err
	}
	if err := c.checkIdle(ctx, one); err != nil {
		return err
	}
	s, held, err := session.Load(one.Path)
	if err != nil {
		return err
	}
	c.resumedMessages, c.flags.Session = held.Messages, s
	if err := sessionlog.RestoreModel(held.Events, &c.flags.ModelFlags); err != nil {
		return err
	}
	if !c.flags.noSave {
		c.log.Session = s
	}
	if held.Damaged > 0 {
		c.warnAtStart("%s of %s cannot be read, and %s left out", display.Count(held.Damaged, "line"), one.Path, suggest.IsAre(held.Damaged))
	}
	return nil
}

// warnAtStart warns about the session of --resume: in the conversation, or on standard error
// without a terminal.
func (c *conversation) warnAtStart(format string, args ...any) {
	c.startWarnings = append(c.startWarnings, fmt.Sprintf(format, args...))
}

// checkIdle returns an error if the model works in a saved conversation in the console: what it
// writes there would be missing here.
func (c *conversation) checkIdle(ctx context.Context, s session.Summary) error {
	if c.flags.noSave {
		return nil
	}
	return factory.RunningDaemon().CheckIdle(ctx, s.ID)
}

// showLastExchange shows the last question and answer of a resumed session, and adds the session's
// messages to the input history.
func (c *conversation) showLastExchange() {
	for _, text := range c.startWarnings {
		if c.isInteractive() {
			c.view.Note("%s", text)
		} else {
			c.app.Warn("%s", text)
		}
	}
	if c.flags.resume == "" || !c.isInteractive() {
		return
	}
	for _, m := range c.resumedMessages {
		if m.Role == mcp.RoleUser && c.term != nil {
			c.term.History.Add(term.Typeable.Replace(m.Text()))
		}
	}
	c.view.Note("resuming a conversation of %s:", display.Count(len(c.resumedMessages), "message"))
	c.showExchange(c.resumedMessages)
}
