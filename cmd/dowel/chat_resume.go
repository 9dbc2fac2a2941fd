package main

import (
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/urlmask"
	"github.com/dowel-mcp/dowel/mcp"
)

// recall finds the session to go on with, or begins one.
func (c *chat) recall() error {
	here, err := folder(".")
	if err != nil {
		return err
	}
	if c.flags.resume == "" {
		if !c.flags.noSave && sessionsDir() != "" {
			c.next = session.New(sessionsDir(), session.Header{Folder: here})
		}
		return nil
	}
	one, err := keptSession(c.flags.resume, here)
	if err != nil {
		return err
	}
	s, held, err := session.Load(one.Path)
	if err != nil {
		return err
	}
	c.before = held.Messages
	if err := c.sameModel(held.Events); err != nil {
		return err
	}
	if !c.flags.noSave {
		c.kept = s
	}
	if held.Damaged > 0 {
		c.app.warn("%s of %s cannot be read, and %s left out", counted(held.Damaged, "line"), one.Path, isAre(held.Damaged))
	}
	return nil
}

// usedModel is the event that says which model replies from then on.
const usedModel = "model"

// modelNote is its data.
type modelNote struct {
	Name     string `json:"name,omitzero"`
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	URL      string `json:"url,omitzero"`
}

// sameModel goes on with the session's model, where none is named.
func (c *chat) sameModel(events []session.Event) error {
	f := &c.flags.modelFlags
	if *f != (modelFlags{}) {
		return nil
	}
	var last modelNote
	for _, e := range events {
		var m modelNote
		if e.Name == usedModel && json.Unmarshal(e.Data, &m) == nil {
			last = m
		}
	}
	switch {
	case last.Name != "":
		*f = modelFlags{model: last.Name, again: true}
	case strings.Contains(last.URL, urlmask.Mask):
		return usagef("the session's model %s was at %s, whose secrets are not kept: name it with --model and --base-url", line(last.Model), line(last.URL))
	case last.Model != "":
		*f = modelFlags{model: last.Model, provider: last.Provider, url: last.URL, again: true}
	}
	return nil
}

// recapitulate shows what was said last in the session that is gone on with.
func (c *chat) recapitulate() {
	if c.flags.resume == "" || c.term == nil {
		return
	}
	var asked, answered string
	for _, m := range c.before {
		text := m.Text()
		if m.Role == mcp.RoleUser {
			c.term.history.Add(typeable.Replace(text))
		}
		switch {
		case text == "":
		case m.Role == mcp.RoleUser:
			asked, answered = text, ""
		default:
			answered = text
		}
	}
	c.show.note("going on with %s:", counted(len(c.before), "message"))
	for _, said := range []struct{ mark, text string }{{"> ", asked}, {"  ", answered}} {
		if said.text != "" {
			c.show.note("%s%s", said.mark, c.show.excerpt(said.text, 3))
		}
	}
}
