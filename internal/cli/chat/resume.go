package chat

import (
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/urlmask"
	"github.com/dowel-mcp/dowel/mcp"
)

// openSession finds the session to go on with, or begins one.
func (c *conversation) openSession() error {
	here, err := connect.Folder(".")
	if err != nil {
		return err
	}
	if c.flags.resume == "" {
		if !c.flags.noSave && sessionsDir() != "" {
			c.pendingSession = session.New(sessionsDir(), session.Header{Folder: here})
		}
		return nil
	}
	one, err := findSession(c.flags.resume, here)
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

// modelEvent is the event that says which model replies from then on.
const modelEvent = "model"

// modelNote is its data.
type modelNote struct {
	Name     string `json:"name,omitzero"`
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	URL      string `json:"url,omitzero"`
}

// restoreModel goes on with the session's model, where none is named.
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
	case strings.Contains(last.URL, urlmask.Mask):
		return exit.Usagef("the session's model %s was at %s, whose secrets are not kept: name it with --model and --base-url", term.Line(last.Model), term.Line(last.URL))
	case last.Model != "":
		*opts = modelregistry.ModelFlags{Model: last.Model, Provider: last.Provider, Url: last.URL, Again: true}
	}
	return nil
}

// showLastExchange shows what was said last in the session that is gone on with.
func (c *conversation) showLastExchange() {
	if c.flags.resume == "" || c.term == nil {
		return
	}
	var asked, answered string
	for _, m := range c.resumedMessages {
		text := m.Text()
		if m.Role == mcp.RoleUser {
			c.term.History.Add(term.Typeable.Replace(text))
		}
		switch {
		case text == "":
		case m.Role == mcp.RoleUser:
			asked, answered = text, ""
		default:
			answered = text
		}
	}
	c.view.Note("going on with %s:", display.Count(len(c.resumedMessages), "message"))
	for _, said := range []struct{ mark, text string }{{"> ", asked}, {"  ", answered}} {
		if said.text != "" {
			c.view.Note("%s%s", said.mark, c.view.Excerpt(said.text, 3))
		}
	}
}
