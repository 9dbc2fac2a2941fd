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

// toolOutput is a tool's raw result with the raw members that hold its output; nil if absent.
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

// decodeOutput returns the result as an Out. A string needs no memory beyond its bytes.
func decodeOutput[Out any](o toolOutput) (Out, error) {
	var out Out
	if _, isText := any(out).(string); isText {
		var text string
		err := decodeText(o.content, o.structured, &text)
		return any(text).(Out), err
	}
	decoded := new(Out)
	err := o.decodeInto(decoded)
	return *decoded, err
}

// decodeInto reads the result into the value that out points to. [Call] documents the types.
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

// joinText joins the text blocks by newlines. texts counts them, blocks counts the blocks of all
// types.
func joinText(content []byte) (text string, texts, blocks int) {
	var more strings.Builder // the text after the first block; most results have one block
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

// parseTextBlock returns the text of a content block. ok is false if the block has another type.
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

// decodeText decodes a result as a string: its text blocks, or else its structured content. A
// result that has content but no text is an error.
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
		return fmt.Errorf("the result has no text but %d other content blocks; call with []mcp.Content to get them", blocks)
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

// decodeFromText decodes JSON from the text. Servers put JSON into text for all results before
// 2025-06-18, and for results that are not objects before 2026-07-28.
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

// outputSchemas holds the output schemas of the tools that were seen in lists. The zero value is
// ready.
type outputSchemas struct {
	count atomic.Int32 // of tools; calls skip the lock while it is 0
	mu    sync.Mutex
	tools map[string]*outputSchema
}

// maxOutputSchemas bounds the tools with a remembered schema.
const maxOutputSchemas = 4096

// outputSchema is compiled when a result first needs it.
type outputSchema struct {
	raw      json.RawMessage
	once     sync.Once
	compiled *schema.Schema // nil if package schema cannot compile it
	refused  error          // results are refused: the dialect is unknown, or a $ref leads elsewhere
}

func (s *outputSchemas) recordTool(t *mcp.Tool) {
	if len(t.OutputSchema) == 0 && s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.tools[t.Name]
	switch {
	case len(t.OutputSchema) == 0:
		delete(s.tools, t.Name)
	case known != nil && string(known.raw) == string(t.OutputSchema):
	case known == nil && len(s.tools) >= maxOutputSchemas:
	default:
		if s.tools == nil {
			s.tools = map[string]*outputSchema{}
		}
		s.tools[t.Name] = &outputSchema{raw: t.OutputSchema}
	}
	s.count.Store(int32(len(s.tools)))
}

func (s *outputSchemas) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tools)
	s.count.Store(0)
}

func (s *outputSchemas) lookupTool(tool string) *outputSchema {
	if s.count.Load() == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[tool]
}

// compiledOutputSchema returns the tool's output schema, or nil if the client knows none that it
// can check. The error refuses the tool's results (basic/index: implementation requirements, $ref
// resolution).
func (c *Client) compiledOutputSchema(tool string) (*schema.Schema, error) {
	s := c.outputSchemas.lookupTool(tool)
	if s == nil {
		return nil, nil
	}
	s.once.Do(func() {
		var err error
		s.compiled, err = schema.Compile(s.raw)
		switch {
		case errors.Is(err, schema.ErrDialect) || errors.Is(err, schema.ErrOutside):
			s.refused = err
		case err != nil:
			c.opts.Logger.Warn("results of a tool cannot be checked", "server", c.serverName(), "tool", tool, "err", err)
		}
	})
	return s.compiled, s.refused
}

// checkOutput validates structured content against the tool's output schema, if that is known
// (server/tools: clients should).
func (c *Client) checkOutput(tool string, o toolOutput) error {
	if o.structured == nil {
		return nil
	}
	s, err := c.compiledOutputSchema(tool)
	if s != nil {
		err = s.Validate(o.structured)
	}
	if err == nil || errors.Is(err, schema.ErrTooComplex) {
		return nil
	}
	res := new(mcp.CallToolResult)
	_ = mcp.Decode(o.raw, res) // best effort: err is reported even if the result does not decode
	return c.callError(mcp.MethodCallTool, tool, &OutputError{Tool: tool, Result: res, Err: err})
}
