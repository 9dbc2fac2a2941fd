package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/opentask"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxListed limits the conversations that /resume lists.
const maxListed = 20

// resumeSession lists the saved conversations, or shows one and continues it after the user agrees.
func (c *conversation) resumeSession(ctx context.Context, id string) error {
	if id == "" {
		all, err := session.List(factory.SessionsDir())
		if err != nil {
			return err
		}
		c.writeSessions(all)
		return nil
	}
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	one, err := session.Find(factory.SessionsDir(), id)
	if err != nil {
		return exit.WithHelp(exit.UsageError{Err: err}, "/resume")
	}
	if c.log.Session != nil && c.log.Session.Header().ID == one.ID {
		return exit.Usagef("%s is this conversation", one.ID)
	}
	if err := c.checkIdle(ctx, one); err != nil {
		return err
	}
	s, held, err := session.Load(one.Path)
	if err != nil {
		return err
	}
	c.view.Note("%s: %s of %s, with %s:", one.ID, display.Count(len(held.Messages), "message"), one.Changed.Local().Format("2006-01-02 15:04"), cmp.Or(term.Line(one.Model), "an unnamed model"))
	c.showExchange(held.Messages)
	if agreed, err := c.agree(ctx, "Continue this conversation? (y, n)"); err != nil || !agreed {
		return errors.Join(err, s.Close())
	}
	c.replaceSession(s)
	c.lastInput = nil
	rt.Continue(c.flags.Session, held.Messages, c.resultsFolder(), c.mode)
	c.showContext(rt)
	c.view.Note("continuing %s; the model stays %s", one.ID, term.Line(rt.Model.Label()))
	return nil
}

// agree asks a question. Without a terminal, the command itself is the agreement.
func (c *conversation) agree(ctx context.Context, prompt string) (bool, error) {
	if !c.isInteractive() {
		return true, nil
	}
	answer, err := c.askUser(ctx, prompt)
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", err
}

// writeSessions lists conversations, the latest one first.
func (c *conversation) writeSessions(all []session.Summary) {
	if len(all) == 0 {
		c.view.Note("no conversation is saved")
		return
	}
	out := c.app.Stdout
	for i, s := range all {
		if i == maxListed {
			c.view.Note("%d more: dowel chat --sessions lists all", len(all)-i)
			break
		}
		head := s.ID + "  " + s.Changed.Local().Format("2006-01-02 15:04") + "  "
		fmt.Fprintln(out, term.Shorten(head+term.FirstLine(firstWords(&s)), max(out.Columns()-1, 20)))
	}
	c.view.Note("/resume ID shows a conversation and continues it")
}

// replaceSession closes the file of the conversation and saves to another one from now on.
func (c *conversation) replaceSession(s *session.Session) {
	c.log.Close()
	c.flags.Session = s // names the conversation, although it is not saved
	if c.flags.noSave {
		_ = s.Close() // nothing was written
		s = nil
	}
	c.log.Session, c.pendingSession, c.log.ModelKnown = s, nil, false
	c.attachSession()
}

// attachSession tells the running dowel that this process continues the session, and no longer the
// session before.
func (c *conversation) attachSession() {
	if c.detachSession != nil {
		c.detachSession()
		c.detachSession = nil
	}
	if c.log.Session == nil {
		return
	}
	c.log.Session.Hold()
	ctx, cancel := context.WithCancel(c.ctx)
	c.detachSession = cancel
	id := c.log.ID()
	c.background.Go(func() { sessionlog.Attach(ctx, programName, id) })
}

// programName is the name of this program in sessions and at the running dowel.
const programName = "dowel chat"

// forkSession copies the conversation to a new file and continues there. The old file stays as it
// is.
func (c *conversation) forkSession(ctx context.Context, _ string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	messages := rt.Agent.Messages()
	if len(messages) == 0 || c.log.Session == nil {
		return exit.Usagef("there is no saved conversation to fork; /save saves this one")
	}
	header, err := newHeader(rt)
	if err != nil {
		return err
	}
	fork := session.New(factory.SessionsDir(), header)
	if err := copyResults(c.log.Session.Results(), fork.Results()); err != nil {
		return fmt.Errorf("the conversation cannot be copied: %w", err)
	}
	if err := sessionlog.Write(fork, messages, rt.Model); err != nil {
		return err
	}
	old := c.log.Session.Header().ID
	c.replaceSession(fork)
	c.log.ModelKnown = true
	rt.Continue(c.flags.Session, messages, fork.Results(), c.mode)
	c.followTasks(rt)
	c.log.EndRun(messages) // lists the open tasks
	c.view.Note("continuing in %s; %s stays as it is, and /resume %s goes back to it", fork.Header().ID, old, old)
	if open := session.OpenTasks(messages); len(open) > 0 {
		c.view.Note("%s: both conversations get the result, each with its next message", describeOpen(rt, open))
	}
	return nil
}

// followTasks says to the log which servers have the tasks of the conversation.
func (c *conversation) followTasks(rt *agentcmd.Runtime) {
	c.log.UseServers(sessionlog.Servers{Origin: rt.Toolbox.Origin, Private: rt.HasOwnServers}, rt.Agent.Messages())
}

// newHeader returns the header of a session that the conversation is copied to. With open tasks,
// the copy has the name of the agent at the running dowel, so that it gets the ends of the tasks,
// too.
func newHeader(rt *agentcmd.Runtime) (session.Header, error) {
	folder, err := connect.Folder(".")
	h := session.Header{Model: rt.Model.Label(), Folder: folder}
	if len(session.OpenTasks(rt.Agent.Messages())) > 0 {
		h.Client = rt.ClientName()
	}
	return h, err
}

// describeOpen says which calls continue as tasks.
func describeOpen(rt *agentcmd.Runtime, open []opentask.Task) string {
	var names []string
	for _, o := range open {
		name := o.Tool
		if server, tool, ok := rt.Toolbox.Origin(o.Tool); ok {
			name = server + "." + tool
		}
		if name = term.Line(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(open) == 1 {
		return "the task of " + names[0] + " goes on"
	}
	return fmt.Sprintf("%d tasks go on (%s)", len(open), strings.Join(names, ", "))
}

// copyResults copies the folder of long results, if there is one.
func copyResults(from, to string) error {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

// showExchange shows the last question and answer of a conversation.
func (c *conversation) showExchange(messages []agent.Message) {
	var asked, answered string
	for _, m := range messages {
		switch text := m.Text(); {
		case text == "":
		case m.Role == mcp.RoleUser:
			asked, answered = text, ""
		default:
			answered = text
		}
	}
	for _, message := range []struct{ mark, text string }{{"> ", asked}, {"  ", answered}} {
		if message.text != "" {
			c.view.Note("%s%s", message.mark, c.view.Excerpt(message.text, 3))
		}
	}
}

// compactConversation has the model summarise the older part of the conversation.
func (c *conversation) compactConversation(ctx context.Context, _ string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	c.view.Working("the model writes a summary …")
	event, err := rt.Agent.Compact(ctx)
	c.view.Working("")
	if err != nil {
		return err
	}
	c.log.Event(event)
	c.view.Note("compacted from about %s to %s tokens; the summary:", display.Thousands(event.Before), display.Thousands(event.After))
	c.view.Note("%s", c.view.Excerpt(event.Summary, 10))
	c.showContext(rt)
	c.log.EndRun(rt.Agent.Messages())
	return nil
}
