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
	r := mcp.ToolResultContent{ToolUseID: id, Content: res.Content, IsError: res.IsError}
	if len(res.StructuredContent) == 0 {
		return r
	}
	for _, block := range r.Content {
		if block.Type == mcp.ContentText && sameJSON([]byte(block.Text), res.StructuredContent) {
			return r
		}
	}
	r.Content = append(r.Content[:len(r.Content):len(r.Content)], mcp.Text(string(res.StructuredContent)))
	return r
}

// maxParsed bounds, in bytes, the JSON whose members are compared one by one. Longer texts are the same if they are as long, and
// different otherwise, when nothing but spaces is taken away.
const maxParsed = 256 << 10

func sameJSON(a, b []byte) bool {
	var one, other bytes.Buffer
	if json.Compact(&one, a) != nil || json.Compact(&other, b) != nil {
		return false
	}
	if bytes.Equal(one.Bytes(), other.Bytes()) {
		return true
	}
	if max(one.Len(), other.Len()) > maxParsed {
		return one.Len() == other.Len()
	}
	return bytes.Equal(sorted(one.Bytes()), sorted(other.Bytes()))
}

// sorted is JSON with its keys in order.
func sorted(text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return out
}

// keep bounds what the model is given of a result: texts that are too long together, resources and links among them, become one of
// which the head and the tail are shown, and what is binary and too large is replaced by a sentence.
func (r *results) keep(res mcp.ToolResultContent, limit, media int) mcp.ToolResultContent {
	res.Content = withoutLarge(res.Content, media)
	length := 0
	for i := range res.Content {
		length += utf8.RuneCountInString(textOf(&res.Content[i]))
	}
	if limit < 0 || length <= limit {
		return res
	}
	var texts []string
	at, rest := -1, []mcp.Content(nil)
	for i := range res.Content {
		text := textOf(&res.Content[i])
		switch {
		case text == "":
			rest = append(rest, res.Content[i])
			continue
		case at < 0:
			at = len(rest)
			rest = append(rest, mcp.Content{})
		}
		texts = append(texts, text)
	}
	rest[at] = mcp.Text(r.shorten(strings.Join(texts, "\n\n"), limit))
	res.Content = rest
	return res
}

// textOf is what providers give a model of a block in words; empty where they show it.
func textOf(c *mcp.Content) string {
	switch {
	case c.Type == mcp.ContentText:
		return c.Text
	case c.Resource != nil && c.Resource.Blob == nil:
		return fmt.Sprintf("[The resource %s:]\n%s", c.Resource.URI, c.Resource.Text)
	case c.Link != nil && c.Link.Description != "":
		return fmt.Sprintf("[link to %s: %s (%s)]", c.Link.Name, c.Link.URI, c.Link.Description)
	case c.Link != nil:
		return c.String()
	}
	return ""
}

// maxLarge is how many times the bound of one binary all of a result may have together.
const maxLarge = 4

// withoutLarge replaces what is binary and over a limit in bytes, alone or together with what is before it.
func withoutLarge(content []mcp.Content, limit int) []mcp.Content {
	if limit < 0 {
		return content
	}
	kept, all := content, 0
	for i := range content {
		n := len(content[i].Data)
		if content[i].Resource != nil {
			n = len(content[i].Resource.Blob)
		}
		if all += n; n == 0 || n <= limit && all <= maxLarge*limit {
			continue
		}
		all -= n
		if &kept[0] == &content[0] {
			kept = append([]mcp.Content(nil), content...)
		}
		kept[i] = mcp.Text(content[i].String() + ": it is too large, and was left out.")
	}
	return kept
}
