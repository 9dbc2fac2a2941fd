package mcp

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Types that every server encodes before its first answer are encoded by hand too, because the JSON
// encoder is slow at the first value of a type.

// appendJSON appends the implementation's JSON.
func (i *Implementation) appendJSON(dst []byte) ([]byte, error) {
	o := beginObject(dst)
	o.writeString("name", i.Name)
	o.writeOptional("title", i.Title)
	o.writeString("version", i.Version)
	o.writeOptional("description", i.Description)
	o.writeOptional("websiteUrl", i.WebsiteURL)
	if len(i.Icons) > 0 {
		o.writeValue("icons", i.Icons)
	}
	return o.finish()
}

// appendJSON validates the schemas and writes them without white space.
func (t *Tool) appendJSON(dst []byte) ([]byte, error) {
	const others = 128 // bytes of the keys, the name and annotations
	o := beginObject(slices.Grow(dst, others+len(t.Description)+len(t.InputSchema)+len(t.OutputSchema)))
	o.writeString("name", t.Name)
	o.writeOptional("title", t.Title)
	o.writeOptional("description", t.Description)
	if len(t.Icons) > 0 {
		o.writeValue("icons", t.Icons)
	}
	o.writeChecked("inputSchema", t.InputSchema)
	if t.OutputSchema != nil {
		o.writeChecked("outputSchema", t.OutputSchema)
	}
	if t.Annotations != nil {
		o.writeValue("annotations", t.Annotations)
	}
	if len(t.Meta) > 0 {
		o.writeValue("_meta", t.Meta)
	}
	return o.finish()
}

// appendJSON appends the annotations' JSON.
func (a *ToolAnnotations) appendJSON(dst []byte) ([]byte, error) {
	o := beginObject(dst)
	o.writeOptional("title", a.Title)
	o.writeHint("readOnlyHint", a.ReadOnlyHint)
	o.writeHint("destructiveHint", a.DestructiveHint)
	o.writeHint("idempotentHint", a.IdempotentHint)
	o.writeHint("openWorldHint", a.OpenWorldHint)
	return o.finish()
}

func (o *objectWriter) writeHint(name string, hint *bool) {
	if hint != nil {
		o.writeKey(name)
		o.dst = strconv.AppendBool(o.dst, *hint)
	}
}

func (o *objectWriter) writeOptional(name, value string) {
	if value != "" {
		o.writeString(name, value)
	}
}

// writeChecked validates and writes JSON of unknown origin; nil becomes null.
func (o *objectWriter) writeChecked(name string, value json.RawMessage) {
	o.writeKey(name)
	if value == nil {
		value = json.RawMessage("null")
	}
	dst, err := jsontext.AppendFormat(o.dst, value, jsonOptions)
	if err != nil {
		o.err = err
		return
	}
	o.dst = dst
}
