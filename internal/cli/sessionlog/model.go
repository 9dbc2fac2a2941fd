package sessionlog

import (
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
)

// modelNote is the data of a [session.EventModel].
type modelNote struct {
	Name     string `json:"name,omitzero"`
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	URL      string `json:"url,omitzero"`
}

// newModelNote describes a model. It leaves out the URL of a model of the configuration, which
// holds it, and masks secrets in others.
func newModelNote(m modelregistry.Choice) modelNote {
	note := modelNote{Name: m.Name, Provider: m.Provider, Model: m.Model}
	if m.Name == "" {
		note.URL = secretmask.URL(m.URL)
	}
	return note
}

// RestoreModel selects the last model of a session, unless flags name one.
func RestoreModel(events []session.Event, flags *modelregistry.ModelFlags) error {
	if *flags != (modelregistry.ModelFlags{}) {
		return nil
	}
	var last modelNote
	for _, e := range events {
		var m modelNote
		if e.Name == session.EventModel && json.Unmarshal(e.Data, &m) == nil {
			last = m
		}
	}
	switch {
	case last.Name != "":
		*flags = modelregistry.ModelFlags{Model: last.Name, Again: true}
	case strings.Contains(last.URL, secretmask.Mask):
		return exit.Usagef("the session's model %s was at %s, and its secrets were not saved: name it with --model and --base-url", term.Line(last.Model), term.Line(last.URL))
	case last.Model != "":
		*flags = modelregistry.ModelFlags{Model: last.Model, Provider: last.Provider, Url: last.URL, Again: true}
	}
	return nil
}
