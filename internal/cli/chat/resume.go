package chat

import (
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// openSession loads the session of --resume, or prepares a new one, which is created with the first
// message.
func (c *conversation) openSession() error {
	folder, err := connect.Folder(".")
	if err != nil {
		return err
	}
	if c.flags.resume == "" {
		if !c.flags.noSave && sessionsDir() != "" {
			c.pendingSession = session.New(sessionsDir(), session.Header{Folder: folder})
		}
		return nil
	}
	one, err := findSession(c.flags.resume, folder)
	if err != nil {
		return err
	}
	s, held, err := session.Load(one.Path)
	if err != nil {
		return err
	}
	c.resumedMessages = held.Messages
	if err := c.restoreModel(held.Events); err != nil {
		return err
	}
	if !c.flags.noSave {
		c.session = s
	}
	if held.Damaged > 0 {
		c.app.Warn("%s of %s cannot be read, and %s left out", display.Count(held.Damaged, "line"), one.Path, suggest.IsAre(held.Damaged))
	}
	return nil
}

// modelEvent is the session event that names the model of all later replies.
const modelEvent = "model"

// modelNote is the data of a modelEvent.
type modelNote struct {
	Name     string `json:"name,omitzero"`
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	URL      string `json:"url,omitzero"`
}

// restoreModel selects the session's last model, unless flags name one.
func (c *conversation) restoreModel(events []session.Event) error {
	opts := &c.flags.ModelFlags
	if *opts != (modelregistry.ModelFlags{}) {
		return nil
	}
	var last modelNote
	for _, e := range events {
		var m modelNote
		if e.Name == modelEvent && json.Unmarshal(e.Data, &m) == nil {
			last = m
		}
	}
	switch {
	case last.Name != "":
		*opts = modelregistry.ModelFlags{Model: last.Name, Again: true}
	case strings.Contains(last.URL, secretmask.Mask):
		return exit.Usagef("the session's model %s was at %s, and its secrets were not saved: name it with --model and --base-url", term.Line(last.Model), term.Line(last.URL))
	case last.Model != "":
		*opts = modelregistry.ModelFlags{Model: last.Model, Provider: last.Provider, Url: last.URL, Again: true}
	}
	return nil
}

// showLastExchange shows the last question and answer of a resumed session, and adds the session's
// messages to the input history.
func (c *conversation) showLastExchange() {
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
