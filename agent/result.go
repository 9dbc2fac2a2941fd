package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
)

// toolResult returns a tool's result as the model gets it. Structured content becomes a text,
// unless the result's own text says the same already.
func toolResult(use *mcp.ToolUse, res *mcp.CallToolResult) mcp.ToolResultContent {
	r := mcp.ToolResultContent{ToolUseID: use.ID, Content: withoutTaskMeta(res.Content), IsError: res.IsError}
	if len(res.StructuredContent) > 0 && !textCoversStructured(res.Content, use.Input, res.StructuredContent) {
		r.Content = append(r.Content[:len(r.Content):len(r.Content)], mcp.Text(string(res.StructuredContent)))
	}
	return r
}

// limitResult limits the size of a result. If its texts, with resources and links, are longer
// than limit characters together, they become one text of their head and tail. Binaries that
// exceed media bytes are replaced by a sentence.
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

// blockText returns the text that providers give a model for a block; "" for media.
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

// maxLarge limits all binaries of a result together, in multiples of the limit of one.
const maxLarge = 4

// replaceLarge replaces binaries by sentences: each binary over limit bytes, and each that would
// raise the sum of the kept binaries over maxLarge*limit bytes.
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
