package mcp

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// What every server encodes before its first answer is written by hand as well: the encoder looks long at a type that it sees
// for the first time.

// AppendJSON appends the implementation's JSON.
func (i *Implementation) AppendJSON(dst []byte) ([]byte, error) {
	o := beginObject(dst)
	o.string("name", i.Name)
	o.optional("title", i.Title)
	o.string("version", i.Version)
	o.optional("description", i.Description)
	o.optional("websiteUrl", i.WebsiteURL)
	if len(i.Icons) > 0 {
		o.value("icons", i.Icons)
	}
	return o.end()
}

// AppendJSON appends the tool's JSON. Its schemas are checked, and written without spaces.
func (t *Tool) AppendJSON(dst []byte) ([]byte, error) {
	o := beginObject(dst)
	o.string("name", t.Name)
	o.optional("title", t.Title)
	o.optional("description", t.Description)
	if len(t.Icons) > 0 {
		o.value("icons", t.Icons)
	}
	o.checked("inputSchema", t.InputSchema)
	if t.OutputSchema != nil {
		o.checked("outputSchema", t.OutputSchema)
	}
	if t.Annotations != nil {
		o.value("annotations", t.Annotations)
	}
	if len(t.Meta) > 0 {
		o.value("_meta", t.Meta)
	}
	return o.end()
}

func (o *object) optional(name, value string) {
	if value != "" {
		o.string(name, value)
	}
}

// checked writes JSON of unknown origin; null where there is none.
func (o *object) checked(name string, value json.RawMessage) {
	o.key(name)
	if value == nil {
		value = json.RawMessage("null")
	}
	dst, err := jsontext.AppendFormat(o.dst, value, options)
	if err != nil {
		o.err = err
		return
	}
	o.dst = dst
}
