package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/go-json-experiment/json/jsontext"
)

// objectWriter writes the members of a JSON object and keeps the first error.
type objectWriter struct {
	dst []byte
	err error
}

func beginObject(dst []byte) objectWriter { return objectWriter{dst: append(dst, '{')} }

func (o *objectWriter) writeKey(name string) {
	if o.dst[len(o.dst)-1] != '{' {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(o.dst, '"')
	o.dst = append(o.dst, name...)
	o.dst = append(o.dst, '"', ':')
}

func (o *objectWriter) writeString(name, value string) {
	o.writeKey(name)
	o.dst = rawjson.AppendString(o.dst, value)
}

// writeRaw writes JSON that the author of a handler made. It fails if that is not JSON in UTF-8.
func (o *objectWriter) writeRaw(name string, value json.RawMessage) {
	if value == nil {
		return
	}
	if err := rawjson.CheckAll(value); err != nil {
		o.err = fmt.Errorf("%s: %w", name, err)
		return
	}
	o.writeKey(name)
	o.dst = append(o.dst, value...)
}

func (o *objectWriter) writeBase64(name string, data []byte) {
	o.writeKey(name)
	o.dst = append(o.dst, '"')
	o.dst = base64.StdEncoding.AppendEncode(o.dst, data)
	o.dst = append(o.dst, '"')
}

func (o *objectWriter) writeValue(name string, v any) {
	o.writeKey(name)
	dst, err := AppendEncode(o.dst, v)
	if err != nil {
		o.err = err
		return
	}
	o.dst = dst
}

func (o *objectWriter) finish() ([]byte, error) { return append(o.dst, '}'), o.err }

// appendJSON appends the content's JSON.
func (c *Content) appendJSON(dst []byte) ([]byte, error) {
	if c.Raw != nil {
		return append(dst, c.Raw...), nil
	}
	if c.Type == ContentResourceLink && c.Link != nil {
		return c.appendLink(dst)
	}
	o := beginObject(dst)
	o.writeString("type", string(c.Type))
	switch c.Type {
	case ContentText:
		o.writeString("text", c.Text)
	case ContentImage, ContentAudio:
		o.writeBase64("data", c.Data)
		o.writeString("mimeType", c.MIMEType)
	case ContentResource:
		o.writeResource(c.Resource)
	case ContentToolUse:
		o.writeToolUse(c.ToolUse)
	case ContentToolResult:
		o.writeToolResult(c.ToolResult)
	default:
		return dst, fmt.Errorf("content of type %q cannot be encoded: use one of the constructors of package mcp", c.Type)
	}
	if c.Annotations != nil {
		o.writeValue("annotations", c.Annotations)
	}
	if len(c.Meta) > 0 {
		o.writeValue("_meta", c.Meta)
	}
	return o.finish()
}

func (c *Content) appendLink(dst []byte) ([]byte, error) {
	link := *c.Link
	if link.Annotations == nil {
		link.Annotations = c.Annotations
	}
	if link.Meta == nil {
		link.Meta = c.Meta
	}
	dst = append(dst, `{"type":"resource_link",`...)
	at := len(dst)
	dst, err := AppendEncode(dst, &link)
	if err != nil {
		return dst, err
	}
	return append(dst[:at], dst[at+1:]...), nil // the encoded object without its opening brace
}

func (o *objectWriter) writeResource(r *ResourceContents) {
	if r == nil {
		o.err = fmt.Errorf("content of type resource has no resource")
		return
	}
	o.writeKey("resource")
	o.dst, o.err = r.appendJSON(o.dst)
}

func (o *objectWriter) writeToolUse(u *ToolUse) {
	if u == nil {
		o.err = fmt.Errorf("content of type tool_use has no tool use")
		return
	}
	input := u.Input
	if input == nil {
		input = json.RawMessage("{}")
	}
	o.writeString("id", u.ID)
	o.writeString("name", u.Name)
	o.writeRaw("input", input)
}

func (o *objectWriter) writeToolResult(r *ToolResultContent) {
	if r == nil {
		o.err = fmt.Errorf("content of type tool_result has no result")
		return
	}
	o.writeString("toolUseId", r.ToolUseID)
	o.writeContents("content", r.Content)
	o.writeRaw("structuredContent", r.StructuredContent)
	if r.IsError {
		o.writeRaw("isError", json.RawMessage("true"))
	}
}

func (o *objectWriter) writeContents(name string, contents []Content) {
	o.writeList(name, len(contents), func(dst []byte, i int) ([]byte, error) { return contents[i].appendJSON(dst) })
}

// writeList writes an array of n elements, which appendElement appends.
func (o *objectWriter) writeList(name string, n int, appendElement func(dst []byte, i int) ([]byte, error)) {
	o.writeKey(name)
	o.dst = append(o.dst, '[')
	for i := range n {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		dst, err := appendElement(o.dst, i)
		if err != nil {
			o.err = err
			return
		}
		o.dst = dst
	}
	o.dst = append(o.dst, ']')
}

// appendJSON appends the contents' JSON.
func (r *ResourceContents) appendJSON(dst []byte) ([]byte, error) {
	o := beginObject(dst)
	o.writeString("uri", r.URI)
	if r.MIMEType != "" {
		o.writeString("mimeType", r.MIMEType)
	}
	if r.Blob != nil {
		o.writeBase64("blob", r.Blob)
	} else {
		o.writeString("text", r.Text)
	}
	if len(r.Meta) > 0 {
		o.writeValue("_meta", r.Meta)
	}
	return o.finish()
}

// appendJSON appends the result's JSON.
func (r *ReadResourceResult) appendJSON(dst []byte) ([]byte, error) {
	o := beginObject(dst)
	if len(r.Meta) > 0 {
		o.writeValue("_meta", r.Meta)
	}
	o.writeList("contents", len(r.Contents), func(dst []byte, i int) ([]byte, error) { return r.Contents[i].appendJSON(dst) })
	return o.finish()
}

// appendJSON appends the result's JSON.
func (r *GetPromptResult) appendJSON(dst []byte) ([]byte, error) {
	o := beginObject(dst)
	if len(r.Meta) > 0 {
		o.writeValue("_meta", r.Meta)
	}
	o.writeOptional("description", r.Description)
	o.writeList("messages", len(r.Messages), func(dst []byte, i int) ([]byte, error) { return r.Messages[i].appendJSON(dst) })
	return o.finish()
}

// appendJSON appends the message's JSON.
func (m *PromptMessage) appendJSON(dst []byte) ([]byte, error) {
	o := beginObject(dst)
	o.writeString("role", string(m.Role))
	o.writeKey("content")
	o.dst, o.err = m.Content.appendJSON(o.dst)
	return o.finish()
}

// appendJSON appends the result's JSON.
func (r *CallToolResult) appendJSON(dst []byte) ([]byte, error) {
	o := beginObject(dst)
	if len(r.Meta) > 0 {
		o.writeValue("_meta", r.Meta)
	}
	o.writeContents("content", r.Content)
	o.writeRaw("structuredContent", r.StructuredContent)
	if r.IsError {
		o.writeRaw("isError", json.RawMessage("true"))
	}
	return o.finish()
}

func (c *Content) parseContent(raw []byte) error {
	*c = Content{}
	typ := rawjson.Lookup(raw, "type")
	name, ok := rawjson.String(typ)
	if !ok {
		return fmt.Errorf("content has no type")
	}
	switch c.Type = ContentType(name); c.Type {
	case ContentText:
		c.Type = ContentText // the constant does not keep the frame in memory
		return c.parseMembers(raw)
	case ContentImage, ContentAudio, ContentResource, ContentToolUse, ContentToolResult:
		return c.parseMembers(raw)
	case ContentResourceLink:
		c.Link = new(Resource)
		return Decode(raw, c.Link)
	}
	c.Raw = append(json.RawMessage(nil), raw...)
	return nil
}

func (c *Content) parseMembers(raw []byte) (err error) {
	switch c.Type {
	case ContentToolUse:
		c.ToolUse = new(ToolUse)
	case ContentToolResult:
		c.ToolResult = new(ToolResultContent)
	}
	for it := rawjson.Object(raw); it.Next() && err == nil; {
		err = c.parseMember(string(it.Key), it.Value)
	}
	if err == nil && c.Type == ContentResource && c.Resource == nil {
		err = fmt.Errorf("content of type resource has no resource")
	}
	return err
}

func (c *Content) parseMember(key string, value []byte) (err error) {
	switch key {
	case "text":
		c.Text, err = parseText(key, value)
	case "data":
		c.Data, err = parseBase64(key, value)
	case "mimeType":
		c.MIMEType, err = parseText(key, value)
	case "resource":
		c.Resource = new(ResourceContents)
		err = c.Resource.parseContents(value)
	case "annotations":
		c.Annotations = new(Annotations)
		err = Decode(value, c.Annotations)
	case "_meta":
		err = Decode(value, &c.Meta)
	default:
		if c.ToolUse != nil {
			err = c.ToolUse.parseMember(key, value)
		} else if c.ToolResult != nil {
			err = c.ToolResult.parseMember(key, value)
		}
	}
	return err
}

func (u *ToolUse) parseMember(key string, value []byte) (err error) {
	switch key {
	case "id":
		u.ID, err = parseText(key, value)
	case "name":
		u.Name, err = parseText(key, value)
	case "input":
		u.Input = append(json.RawMessage(nil), value...)
	}
	return err
}

func (r *ToolResultContent) parseMember(key string, value []byte) (err error) {
	switch key {
	case "toolUseId":
		r.ToolUseID, err = parseText(key, value)
	case "content":
		err = Decode(value, &r.Content)
	case "structuredContent":
		r.StructuredContent = append(json.RawMessage(nil), value...)
	case "isError":
		r.IsError = string(value) == "true"
	}
	return err
}

func (r *ResourceContents) parseContents(raw []byte) (err error) {
	*r = ResourceContents{}
	for it := rawjson.Object(raw); it.Next() && err == nil; {
		switch string(it.Key) {
		case "uri":
			r.URI, err = parseText("uri", it.Value)
		case "mimeType":
			r.MIMEType, err = parseText("mimeType", it.Value)
		case "text":
			r.Text, err = parseText("text", it.Value)
		case "blob":
			r.Blob, err = parseBase64("blob", it.Value)
		case "_meta":
			err = Decode(it.Value, &r.Meta)
		}
	}
	return err
}

func parseText(name string, raw []byte) (string, error) {
	s, ok := rawjson.String(raw)
	if !ok {
		return "", fmt.Errorf("%s must be a string", name)
	}
	return s, nil
}

func parseBase64(name string, raw []byte) ([]byte, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, fmt.Errorf("%s must be a base64 string", name)
	}
	encoded := raw[1 : len(raw)-1]
	if plain, err := jsontext.AppendUnquote(nil, raw); err == nil && len(plain) != len(encoded) {
		encoded = plain
	}
	data, err := base64.StdEncoding.AppendDecode(make([]byte, 0, base64.StdEncoding.DecodedLen(len(encoded))), encoded)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}
