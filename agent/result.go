package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
)

// resultOf is a tool's result as the model gets it. What is structured is given once: where the text says the same it is left
// out, and where there is no text it becomes one.
func resultOf(id string, res *mcp.CallToolResult) mcp.ToolResultContent {
	r := mcp.ToolResultContent{ToolUseID: id, Content: res.Content, StructuredContent: res.StructuredContent, IsError: res.IsError}
	if len(r.StructuredContent) == 0 {
		return r
	}
	for _, block := range r.Content {
		if block.Type == mcp.ContentText && sameJSON([]byte(block.Text), r.StructuredContent) {
			r.StructuredContent = nil
			return r
		}
	}
	r.Content = append(r.Content[:len(r.Content):len(r.Content)], mcp.Text(string(r.StructuredContent)))
	r.StructuredContent = nil
	return r
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, errOne := json.Marshal(x) // which sorts the keys
	other, errOther := json.Marshal(y)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// readTool is the name of the agent's own tool that reads what was left out of a long result.
const readTool = "read_result"

// maxKept bounds the characters of long results that are kept to be read: beyond it, the oldest are forgotten.
const maxKept = 64 << 20

// results keeps what was left out of long results.
type results struct {
	texts map[string]string
	order []string
	size  int
	count int
}

var readDefinition = mcp.Tool{
	Name: readTool,
	Description: "Reads a part of a tool's result that was too long to be shown whole. The shortened result says under which name it is kept. " +
		"Give search to find lines that hold a text instead of reading on.",
	InputSchema: json.RawMessage(`{"type":"object","properties":{` +
		`"result":{"type":"string","description":"The name under which the result is kept"},` +
		`"offset":{"type":"integer","minimum":0,"description":"The first character to read; 0 is the beginning"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":20000,"description":"How many characters to read at most; 10000 unless told otherwise"},` +
		`"search":{"type":"string","description":"A text: only lines that hold it are returned, with their offsets"}},` +
		`"required":["result"],"additionalProperties":false}`),
}

// tools are the agent's own, as long as there is something to read.
func (r *results) tools() []mcp.Tool {
	if len(r.texts) == 0 {
		return nil
	}
	return []mcp.Tool{readDefinition}
}

func (r *results) owns(tool string) bool { return tool == readTool && len(r.texts) > 0 }

// keep shortens the texts of a result that are too long together, and keeps them to be read.
func (r *results) keep(res mcp.ToolResultContent, limit int) mcp.ToolResultContent {
	length := 0
	for _, block := range res.Content {
		length += utf8.RuneCountInString(block.Text)
	}
	if limit < 0 || length <= limit {
		return res
	}
	short := append([]mcp.Content(nil), res.Content...)
	for i, block := range short {
		share := int(int64(limit) * int64(utf8.RuneCountInString(block.Text)) / int64(length))
		if block.Type == mcp.ContentText && utf8.RuneCountInString(block.Text) > share {
			short[i].Text = r.shorten(block.Text, share)
		}
	}
	res.Content = short
	return res
}

// shorten returns the head and the tail of a text, and says how to read the rest.
func (r *results) shorten(text string, limit int) string {
	name := r.store(text)
	all := []rune(text)
	head := limit * 3 / 4
	tail := limit - head
	return fmt.Sprintf("%s\n\n[%d of %d characters are left out here. The whole is kept as %q: read on with the tool %s, from offset %d.]\n\n%s",
		string(all[:head]), len(all)-limit, len(all), name, readTool, head, string(all[len(all)-tail:]))
}

func (r *results) store(text string) (name string) {
	if r.texts == nil {
		r.texts = map[string]string{}
	}
	r.count++
	name = fmt.Sprintf("result-%d", r.count)
	r.texts[name], r.size = text, r.size+len(text)
	for r.order = append(r.order, name); r.size > maxKept && len(r.order) > 1; r.order = r.order[1:] {
		r.size -= len(r.texts[r.order[0]])
		delete(r.texts, r.order[0])
	}
	return name
}

// read answers a call of the agent's own tool.
func (r *results) read(use mcp.ToolUse) mcp.ToolResultContent {
	text, err := r.part(use.Input)
	res := mcp.ToolResultContent{ToolUseID: use.ID, Content: []mcp.Content{mcp.Text(text)}}
	if err != nil {
		res.Content, res.IsError = []mcp.Content{mcp.Text(err.Error())}, true
	}
	return res
}

func (r *results) part(input json.RawMessage) (string, error) {
	in := struct {
		Result, Search string
		Offset, Limit  int
	}{Limit: 10_000}
	if err := json.Unmarshal(input, &in); err != nil {
		return "", fmt.Errorf("the arguments of %s are not as its schema says: %w", readTool, err)
	}
	text, ok := r.texts[in.Result]
	if !ok {
		return "", fmt.Errorf("there is no result %q: there are %s", in.Result, strings.Join(r.order, ", "))
	}
	if in.Search != "" {
		return search(text, in.Search), nil
	}
	all := []rune(text)
	if in.Offset < 0 || in.Offset >= len(all) {
		return "", fmt.Errorf("%s has %d characters: the offset %d is not in it", in.Result, len(all), in.Offset)
	}
	end := min(in.Offset+max(1, min(in.Limit, 20_000)), len(all))
	part := string(all[in.Offset:end])
	if end < len(all) {
		part += fmt.Sprintf("\n\n[%d of %d characters are left: read on from offset %d.]", len(all)-end, len(all), end)
	}
	return part, nil
}

// search returns the lines of a text that hold another, with the offsets at which they begin.
func search(text, part string) string {
	const most, longest = 100, 500
	var found strings.Builder
	offset, n := 0, 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			if n++; n > most {
				fmt.Fprintf(&found, "[There are more than %d such lines.]\n", most)
				break
			}
			shown := []rune(strings.TrimRight(line, "\r\n"))
			fmt.Fprintf(&found, "%d: %s\n", offset, string(shown[:min(len(shown), longest)]))
		}
		offset += utf8.RuneCountInString(line)
	}
	if n == 0 {
		return fmt.Sprintf("no line holds %q", part)
	}
	return found.String()
}
