package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// output is a tool's result with the members that hold what it put out; nil where they are absent.
type output struct {
	raw                 json.RawMessage
	content, structured []byte
	failed              bool // the tool reports a failure
}

func readOutput(raw json.RawMessage) output {
	o := output{raw: raw}
	for it := rawjson.Object(raw); it.Next(); {
		switch string(it.Key) {
		case "content":
			o.content = it.Value
		case "structuredContent":
			o.structured = it.Value
		case "isError":
			o.failed = string(it.Value) == "true"
		}
	}
	return o
}

// decode reads the result into the value that out points to.
func (o *output) decode(out any) error {
	switch out := out.(type) {
	case *string:
		return decodeText(o.content, o.structured, out)
	case *mcp.CallToolResult:
		return readable(mcp.Decode(o.raw, out))
	case **mcp.CallToolResult:
		*out = new(mcp.CallToolResult)
		return readable(mcp.Decode(o.raw, *out))
	case *[]mcp.Content:
		return readable(mcp.Decode(orEmpty(o.content), out))
	case *mcp.Content:
		return firstContent(o.content, out)
	case *json.RawMessage:
		*out = rawOutput(o.content, o.structured)
		return nil
	case *struct{}:
		return nil
	}
	if o.structured != nil {
		return readable(schema.Decode(o.structured, out))
	}
	return decodeFromText(o.content, out)
}

func readable(err error) error {
	if err != nil {
		return unreadable(err)
	}
	return nil
}

func orEmpty(content []byte) []byte {
	if content == nil {
		return []byte("[]")
	}
	return content
}

// textOf joins the blocks of text; blocks says how many there are, of any type.
func textOf(content []byte) (text string, texts, blocks int) {
	var more strings.Builder // beyond the first, which is mostly the only one
	for it := rawjson.Array(content); it.Next(); blocks++ {
		block, ok := textBlock(it.Value)
		if !ok {
			continue
		}
		if texts++; texts == 1 {
			text = block
		} else {
			more.WriteByte('\n')
			more.WriteString(block)
		}
	}
	return text + more.String(), texts, blocks
}

// textBlock returns the text of a block that is one.
func textBlock(block []byte) (text string, ok bool) {
	var raw []byte
	for it := rawjson.Object(block); it.Next(); {
		switch string(it.Key) {
		case "type":
			ok = rawjson.Is(it.Value, string(mcp.ContentText))
		case "text":
			raw = it.Value
		}
	}
	if !ok {
		return "", false
	}
	text, _ = rawjson.String(raw)
	return text, true
}

func firstContent(content []byte, out *mcp.Content) error {
	for it := rawjson.Array(content); it.Next(); {
		return readable(mcp.Decode(it.Value, out))
	}
	return errors.New("the result has no content")
}

// decodeText takes the text, which stands for structured content where there is both. A result that has content and no
// text is no string.
func decodeText(content, structured []byte, out *string) error {
	text, texts, blocks := textOf(content)
	switch {
	case texts > 0 || structured == nil && blocks == 0:
		*out = text
	case structured != nil:
		if s, ok := rawjson.String(structured); ok {
			*out = s
		} else {
			*out = string(structured)
		}
	default:
		return fmt.Errorf("the result holds no text but %d other blocks of content; take them as []mcp.Content", blocks)
	}
	return nil
}

func rawOutput(content, structured []byte) json.RawMessage {
	if structured != nil {
		return structured
	}
	text, _, _ := textOf(content)
	if rawjson.CheckAll([]byte(text)) == nil {
		return json.RawMessage(text)
	}
	return rawjson.AppendString(nil, text)
}

// decodeFromText reads what servers put into text: all before 2025-06-18, and what is no object before 2026-07-28.
func decodeFromText(content []byte, out any) error {
	text, texts, blocks := textOf(content)
	if a, ok := out.(*any); ok && rawjson.CheckAll([]byte(text)) != nil {
		*a = text
		return nil
	}
	if texts == 0 && blocks == 0 {
		return nil
	}
	if err := schema.Decode([]byte(text), out); err != nil {
		return fmt.Errorf("the result has no structured content, and its text cannot be read as the wanted type: %w", err)
	}
	return nil
}

// toolbook holds the output schemas of the tools that were seen in lists. The zero toolbook is ready.
type toolbook struct {
	count atomic.Int32 // spares calls the lock where no tool has a schema
	mu    sync.Mutex
	tools map[string]*outputSchema
}

// maxToolbook bounds the tools whose schemas are held.
const maxToolbook = 4096

// outputSchema is compiled when a result first needs it.
type outputSchema struct {
	raw     json.RawMessage
	once    sync.Once
	checked *schema.Schema // nil where it cannot be checked here
}

func (b *toolbook) learn(t *mcp.Tool) {
	if len(t.OutputSchema) == 0 && b.count.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.tools[t.Name]
	switch {
	case len(t.OutputSchema) == 0:
		delete(b.tools, t.Name)
	case known != nil && string(known.raw) == string(t.OutputSchema):
	case known == nil && len(b.tools) >= maxToolbook:
	default:
		if b.tools == nil {
			b.tools = map[string]*outputSchema{}
		}
		b.tools[t.Name] = &outputSchema{raw: t.OutputSchema}
	}
	b.count.Store(int32(len(b.tools)))
}

func (b *toolbook) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.tools)
	b.count.Store(0)
}

func (b *toolbook) find(tool string) *outputSchema {
	if b.count.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools[tool]
}

// outputSchema returns the tool's compiled output schema, nil if there is none to check with.
func (c *Client) outputSchema(tool string) *schema.Schema {
	s := c.tools.find(tool)
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		var err error
		if s.checked, err = schema.Compile(s.raw); err != nil {
			c.opts.Logger.Warn("results of a tool cannot be checked", "server", c.name(), "tool", tool, "err", err)
		}
	})
	return s.checked
}

// checkOutput checks structured content against the tool's output schema, where that is known (server/tools: clients
// should).
func (c *Client) checkOutput(tool string, o output) error {
	s := c.outputSchema(tool)
	if s == nil || o.structured == nil {
		return nil
	}
	err := s.Validate(o.structured)
	if err == nil || errors.Is(err, schema.ErrTooComplex) {
		return nil
	}
	res := new(mcp.CallToolResult)
	_ = mcp.Decode(o.raw, res) // it may be beyond reading; the error says enough
	return c.failure(mcp.MethodCallTool, tool, &OutputError{Tool: tool, Result: res, Err: err})
}
