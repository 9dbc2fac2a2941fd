package server

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
)

// Kind says what an [Item] is.
type Kind string

const (
	KindTool             Kind = "tool"
	KindPrompt           Kind = "prompt"
	KindResource         Kind = "resource"
	KindResourceTemplate Kind = "resource template"
)

// Item is a tool, prompt, resource or resource template, made by [NewTool] and its like, to be given to [Server.Add] any
// number of times. It does not change.
type Item struct {
	Kind Kind
	// Name is what the item is asked for by: the name of a tool or prompt, the URI of a resource, the text of a template.
	Name string
	// Meta is what the item's options held; read only.
	Meta mcp.Meta

	encoded json.RawMessage // as lists hold it
	entry   any             // *tool, *prompt, *resource or *template; nil for a computed resource
}

func encodeItem(kind Kind, name string, meta mcp.Meta, described, entry any) (Item, error) {
	encoded, err := mcp.Encode(described)
	return Item{Kind: kind, Name: name, Meta: meta, encoded: encoded, entry: entry}, err
}
