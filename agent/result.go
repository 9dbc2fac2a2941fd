package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
)

// toolResult is a tool's result as the model gets it. What is structured is given once: where the text says the same it is left
// out, and where there is no text it becomes one.
func toolResult(use *mcp.ToolUse, res *mcp.CallToolResult) mcp.ToolResultContent {
	r := mcp.ToolResultContent{ToolUseID: use.ID, Content: res.Content, IsError: res.IsError}
	if len(res.StructuredContent) > 0 && !textCoversStructured(res.Content, use.Input, res.StructuredContent) {
		r.Content = append(r.Content[:len(r.Content):len(r.Content)], mcp.Text(string(res.StructuredContent)))
	}
	return r
}

// limitResult bounds what the model is given of a result: texts that are too long together, resources and links among them, become one of
// which the head and the tail are shown, and what is binary and too large is replaced by a sentence.
func (r *resultReader) limitResult(res mcp.ToolResultContent, limit, media int) mcp.ToolResultContent {
	res.Content = replaceLarge(res.Content, media)
	length := 0
	for i := range res.Content {
		length += utf8.RuneCountInString(blockText(&res.Content[i]))
	}
	if limit < 0 || length <= limit {
		return res
	}
	var texts []string
	at, rest := -1, []mcp.Content(nil)
	for i := range res.Content {
		text := blockText(&res.Content[i])
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
	rest[at] = mcp.Text(r.shortenText(strings.Join(texts, "\n\n"), limit))
	res.Content = rest
	return res
}

// blockText is what providers give a model of a block in words; empty where they show it.
func blockText(c *mcp.Content) string {
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

// replaceLarge replaces what is binary and over a limit in bytes, alone or together with what is before it.
func replaceLarge(content []mcp.Content, limit int) []mcp.Content {
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
