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

// toolOutput is a tool's result with the members that hold what it put out; nil where they are absent.
type toolOutput struct {
	raw                 json.RawMessage
	content, structured []byte
	failed              bool // the tool reports a failure
}

func parseOutput(raw json.RawMessage) toolOutput {
	o := toolOutput{raw: raw}
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

// decodeInto reads the result into the value that out points to.
func (o *toolOutput) decodeInto(out any) error {
	switch out := out.(type) {
	case *string:
		return decodeText(o.content, o.structured, out)
	case *mcp.CallToolResult:
		return readable(mcp.Decode(o.raw, out))
	case **mcp.CallToolResult:
		*out = new(mcp.CallToolResult)
		return readable(mcp.Decode(o.raw, *out))
	case *[]mcp.Content:
		return readable(mcp.Decode(orEmptyArray(o.content), out))
	case *mcp.Content:
		return decodeFirstContent(o.content, out)
	case *json.RawMessage:
		*out = rawJSONOutput(o.content, o.structured)
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

func orEmptyArray(content []byte) []byte {
	if content == nil {
		return []byte("[]")
	}
	return content
}

// joinText joins the blocks of text; blocks says how many there are, of any type.
func joinText(content []byte) (text string, texts, blocks int) {
	var more strings.Builder // beyond the first, which is mostly the only one
	for it := rawjson.Array(content); it.Next(); blocks++ {
		block, ok := parseTextBlock(it.Value)
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

// parseTextBlock returns the text of a block that is one.
func parseTextBlock(block []byte) (text string, ok bool) {
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

func decodeFirstContent(content []byte, out *mcp.Content) error {
	for it := rawjson.Array(content); it.Next(); {
		return readable(mcp.Decode(it.Value, out))
	}
	return errors.New("the result has no content")
}

// decodeText takes the text, which stands for structured content where there is both. A result that has content and no
// text is no string.
func decodeText(content, structured []byte, out *string) error {
	text, texts, blocks := joinText(content)
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

func rawJSONOutput(content, structured []byte) json.RawMessage {
	if structured != nil {
		return structured
	}
	text, _, _ := joinText(content)
	if rawjson.CheckAll([]byte(text)) == nil {
		return json.RawMessage(text)
	}
	return rawjson.AppendString(nil, text)
}

// decodeFromText reads what servers put into text: all before 2025-06-18, and what is no object before 2026-07-28.
func decodeFromText(content []byte, out any) error {
	text, texts, blocks := joinText(content)
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

// outputSchemas holds the output schemas of the tools that were seen in lists. The zero toolbook is ready.
type outputSchemas struct {
	count atomic.Int32 // spares calls the lock where no tool has a schema
	mu    sync.Mutex
	tools map[string]*outputSchema
}

// maxOutputSchemas bounds the tools whose schemas are held.
const maxOutputSchemas = 4096

// outputSchema is compiled when a result first needs it.
type outputSchema struct {
	raw     json.RawMessage
	once    sync.Once
	compiled *schema.Schema // nil where it cannot be checked here
}

func (b *outputSchemas) recordTool(t *mcp.Tool) {
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
	case known == nil && len(b.tools) >= maxOutputSchemas:
	default:
		if b.tools == nil {
			b.tools = map[string]*outputSchema{}
		}
		b.tools[t.Name] = &outputSchema{raw: t.OutputSchema}
	}
	b.count.Store(int32(len(b.tools)))
}

func (b *outputSchemas) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.tools)
	b.count.Store(0)
}

func (b *outputSchemas) lookupTool(tool string) *outputSchema {
	if b.count.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools[tool]
}

// compiledOutputSchema returns the tool's compiled output schema, nil if there is none to check with.
func (c *Client) compiledOutputSchema(tool string) *schema.Schema {
	s := c.outputSchemas.lookupTool(tool)
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		var err error
		if s.compiled, err = schema.Compile(s.raw); err != nil {
			c.opts.Logger.Warn("results of a tool cannot be checked", "server", c.serverName(), "tool", tool, "err", err)
		}
	})
	return s.compiled
}

// checkOutput checks structured content against the tool's output schema, where that is known (server/tools: clients
// should).
func (c *Client) checkOutput(tool string, o toolOutput) error {
	s := c.compiledOutputSchema(tool)
	if s == nil || o.structured == nil {
		return nil
	}
	err := s.Validate(o.structured)
	if err == nil || errors.Is(err, schema.ErrTooComplex) {
		return nil
	}
	res := new(mcp.CallToolResult)
	_ = mcp.Decode(o.raw, res) // it may be beyond reading; the error says enough
	return c.callError(mcp.MethodCallTool, tool, &OutputError{Tool: tool, Result: res, Err: err})
}
