package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/schemaform"
	"github.com/dowel-mcp/dowel/internal/search"
	"github.com/dowel-mcp/dowel/internal/tokencount"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// ItemName names a tool, prompt, resource or resource template of a server.
type ItemName struct {
	Server string `json:"server"`
	Kind   string `json:"kind"` // tool, prompt, resource or template
	Name   string `json:"name"` // in the server, after its rename rules; a URI or a URI template of resources
}

// ItemSummary is an item in a list.
type ItemSummary struct {
	ItemName
	Title       string `json:"title,omitzero"`
	Description string `json:"description,omitzero"` // cut
	// Tokens is the estimated cost of the definition for a model; 0 for items that models
	// do not get.
	Tokens int `json:"tokens,omitzero"`
	// Hints are the annotations of the tool in words, such as read-only.
	Hints []string `json:"hints,omitempty"`
}

// itemKinds are the names of kinds in the API.
var itemKinds = [catalog.Kinds]string{catalog.Tool: "tool", catalog.Prompt: "prompt", catalog.Resource: "resource", catalog.Template: "template"}

type hubItem = catalog.Item[*hub.Upstream]

// itemDefinition is the part of a definition that all kinds have, or that one of them needs.
type itemDefinition struct {
	Name         string               `json:"name"`
	Title        string               `json:"title"`
	Description  string               `json:"description"`
	InputSchema  json.RawMessage      `json:"inputSchema"`
	OutputSchema json.RawMessage      `json:"outputSchema"`
	Annotations  *mcp.ToolAnnotations `json:"annotations"`
	Arguments    []mcp.PromptArgument `json:"arguments"`
	URITemplate  string               `json:"uriTemplate"`
}

// readDefinition returns the parts of a definition that have the right types.
func readDefinition(raw json.RawMessage) (d itemDefinition) {
	for it := rawjson.Object(raw); it.Next(); {
		text, _ := rawjson.String(it.Value)
		switch string(it.Key) {
		case "name":
			d.Name = text
		case "title":
			d.Title = text
		case "description":
			d.Description = text
		case "uriTemplate":
			d.URITemplate = text
		case "inputSchema":
			d.InputSchema = it.Value
		case "outputSchema":
			d.OutputSchema = it.Value
		case "annotations":
			if json.Unmarshal(it.Value, &d.Annotations) != nil {
				d.Annotations = nil
			}
		case "arguments":
			if json.Unmarshal(it.Value, &d.Arguments) != nil {
				d.Arguments = nil
			}
		}
	}
	return d
}

func nameOf(item *hubItem) ItemName {
	return ItemName{item.Upstream.Name(), itemKinds[item.Kind], item.LocalName}
}

// summarizeItem returns the row of an item.
func summarizeItem(item *hubItem) ItemSummary {
	d := readDefinition(item.LocalDefinition)
	s := ItemSummary{ItemName: nameOf(item), Title: cutText(d.Title), Description: cutText(d.Description)}
	if s.Title == "" && item.Kind >= catalog.Resource {
		s.Title = cutText(d.Name)
	}
	if a := d.Annotations; a != nil && a.Title != "" && s.Title == "" {
		s.Title = cutText(a.Title)
	}
	if item.Kind == catalog.Tool {
		s.Tokens = tokencount.EstimateTool(item.WireName, d.Description, d.InputSchema)
		s.Hints = describeHints(d.Annotations)
	}
	return s
}

// describeHints returns the annotations of a tool in words.
func describeHints(a *mcp.ToolAnnotations) (all []string) {
	if a == nil {
		return nil
	}
	add := func(value *bool, yes string) {
		if value != nil && *value {
			all = append(all, yes)
		}
	}
	add(a.ReadOnlyHint, "read-only")
	add(a.DestructiveHint, "destructive")
	add(a.IdempotentHint, "idempotent")
	add(a.OpenWorldHint, "open world")
	return all
}

// serveCatalog answers with all items of all servers, or with the matches of a query, the best
// first.
func (d Running) serveCatalog(w http.ResponseWriter, r *http.Request) {
	items, err := d.catalogOf(r)
	if err != nil {
		writeOutcome(w, err)
		return
	}
	all := []ItemSummary{}
	for _, item := range findItems(items, strings.TrimSpace(r.URL.Query().Get("q"))) {
		all = append(all, summarizeItem(item))
	}
	writeJSON(w, map[string]any{"items": all})
}

// findItems returns the items with a query in their names, and then the other matches of the search
// of tools. An empty query finds all.
func findItems(c *hubCatalog, query string) []*hubItem {
	var all, found []*hubItem
	for kind := range catalog.Kinds {
		all = append(all, c.Items(kind)...)
	}
	if query == "" {
		return all
	}
	var docs []search.Tool
	for _, item := range all {
		if text := strings.ToLower(item.QualifiedName + " " + item.LocalName + " " + readDefinition(item.LocalDefinition).Title); strings.Contains(text, strings.ToLower(query)) {
			found = append(found, item)
		}
		docs = append(docs, search.FromDefinition(item.Upstream.Name(), item.QualifiedName, item.LocalDefinition))
	}
	for _, hit := range search.New(docs).Find(query, 0) {
		if !slices.Contains(found, all[hit.Tool]) {
			found = append(found, all[hit.Tool])
		}
	}
	return found
}

// findItem returns an item by its name.
func findItem(h *hub.Hub, name ItemName) (*hubItem, error) { return findItemIn(h.Catalog(), h, name) }

// findItemIn returns an item of a catalog of the hub.
func findItemIn(c *hubCatalog, h *hub.Hub, name ItemName) (*hubItem, error) {
	for kind := range catalog.Kinds {
		for _, item := range c.Items(kind) {
			if nameOf(item) == name {
				return item, nil
			}
		}
	}
	if h.Upstream(name.Server) == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoServer, name.Server)
	}
	return nil, fmt.Errorf("%s has no %s %s now", name.Server, name.Kind, name.Name)
}

// itemDetail is an item with the form of its arguments.
type itemDetail struct {
	ItemSummary
	// Definition is the text of the definition, as clients get it.
	Definition string            `json:"definition"`
	About      string            `json:"about,omitzero"` // the whole description
	Form       *schemaform.Field `json:"form,omitempty"`
	// FormError is the reason for a missing form, CheckError the reason why arguments
	// are not checked.
	FormError  string `json:"formError,omitzero"`
	CheckError string `json:"checkError,omitzero"`
	HasOutput  bool   `json:"hasOutput,omitzero"` // an output schema
}

func (d Running) serveItem(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	items, err := d.catalogOf(r)
	if err != nil {
		writeOutcome(w, err)
		return
	}
	item, err := findItemIn(items, d.Hub, ItemName{q.Get("server"), q.Get("kind"), q.Get("name")})
	if err != nil {
		writeOutcome(w, err)
		return
	}
	definition := readDefinition(item.LocalDefinition)
	detail := itemDetail{ItemSummary: summarizeItem(item), Definition: string(item.LocalDefinition), About: definition.Description, HasOutput: definition.OutputSchema != nil}
	if arguments := argumentSchema(item); arguments != nil {
		if detail.Form, err = schemaform.Build(arguments); err != nil {
			detail.FormError = err.Error()
		}
		if _, err := schema.Compile(arguments); err != nil {
			detail.CheckError = err.Error()
		}
	}
	writeJSON(w, detail)
}

// argumentSchema returns the schema of the arguments of an item, or nil if it takes none.
func argumentSchema(item *hubItem) json.RawMessage {
	d := readDefinition(item.LocalDefinition)
	switch item.Kind {
	case catalog.Tool:
		return d.InputSchema
	case catalog.Prompt:
		return textSchema(d.Arguments)
	case catalog.Template:
		var all []mcp.PromptArgument
		if t, err := uritemplate.Parse(item.LocalName); err == nil {
			for _, name := range t.Names() {
				all = append(all, mcp.PromptArgument{Name: name})
			}
		}
		return textSchema(all)
	}
	return nil
}

// textSchema returns the schema of an object of texts.
func textSchema(arguments []mcp.PromptArgument) json.RawMessage {
	text := []byte(`{"type":"object","properties":{`)
	required := []string{}
	for i, a := range arguments {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(rawjson.AppendString(text, a.Name), `:{"type":"string","title":`...)
		text = append(rawjson.AppendString(text, a.Title), `,"description":`...)
		text = append(rawjson.AppendString(text, a.Description), '}')
		if a.Required {
			required = append(required, a.Name)
		}
	}
	names, _ := json.Marshal(required) // strings can be encoded
	return append(append(append(text, `},"additionalProperties":false,"required":`...), names...), '}')
}

// formRequest asks for a lazy field of an item's form.
type formRequest struct {
	ItemName
	At []string `json:"at"`
}

func (d Running) serveForm(w http.ResponseWriter, r *http.Request) {
	var q formRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		writeOutcome(w, err)
		return
	}
	item, err := findItem(d.Hub, q.ItemName)
	if err != nil {
		writeOutcome(w, err)
		return
	}
	field, err := schemaform.Build(argumentSchema(item), q.At...)
	writeResult(w, field, err)
}

// Verdict says whether a value matches a schema.
type Verdict struct {
	OK     bool        `json:"ok"`
	Issues []IssueInfo `json:"issues,omitempty"`
	More   bool        `json:"more,omitzero"`  // there are further issues
	Error  string      `json:"error,omitzero"` // the value was not checked, or is not JSON
}

// IssueInfo is a fault of a value.
type IssueInfo struct {
	Path    string `json:"path"` // a JSON pointer
	Message string `json:"message"`
}

// checkValue checks a value against a schema.
func checkValue(rules json.RawMessage, value []byte) Verdict {
	s, err := schema.Compile(rules)
	if err != nil {
		return Verdict{Error: err.Error()}
	}
	err = s.Validate(value)
	var invalid *schema.ValidationError
	switch {
	case err == nil:
		return Verdict{OK: true}
	case !errors.As(err, &invalid):
		return Verdict{Error: err.Error()}
	}
	v := Verdict{More: invalid.More}
	for _, issue := range invalid.Issues {
		v.Issues = append(v.Issues, IssueInfo{issue.Path, issue.Message})
	}
	return v
}

// serveCheck answers whether arguments match the schema of an item.
func (d Running) serveCheck(w http.ResponseWriter, r *http.Request) {
	var q CallRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		writeOutcome(w, err)
		return
	}
	item, err := findItem(d.Hub, q.ItemName)
	if err != nil {
		writeOutcome(w, err)
		return
	}
	if rules := argumentSchema(item); rules != nil {
		writeJSON(w, checkValue(rules, []byte(q.Arguments)))
		return
	}
	writeJSON(w, Verdict{OK: true})
}
