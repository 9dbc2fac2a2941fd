package agent

import (
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// Estimates in tokens. Each provider counts in its own way and reports the count only with its
// reply. Until then four ASCII characters, or one other character, count as a token. This is close
// for English and JSON, and too high for most other texts.
const (
	messageOverhead    = 4 // added to the content of a message
	toolOverhead       = 8
	blockOverhead      = 8
	imageTokens        = 1500 // whatever its size
	audioBytesPerToken = 1600
)

// estimateText estimates the tokens of a text.
func estimateText[T ~string | ~[]byte](text T) int {
	ascii, other := 0, 0
	for i := range len(text) {
		switch b := text[i]; {
		case b < 0x80:
			ascii++
		case b >= 0xC0: // the first byte of a character
			other++
		}
	}
	return (ascii+3)/4 + other
}

func estimateMessage(m *Message) int {
	return messageOverhead + estimateContent(m.Content) + estimateText(m.Reasoning)
}

func estimateContent(content []mcp.Content) (n int) {
	for i := range content {
		n += estimateBlock(&content[i])
	}
	return n
}

func estimateBlock(c *mcp.Content) int {
	switch {
	case c.Type == mcp.ContentText:
		return estimateText(c.Text)
	case c.Type == mcp.ContentImage:
		return imageTokens
	case c.Type == mcp.ContentAudio:
		return blockOverhead + len(c.Data)/audioBytesPerToken
	case c.Resource != nil && c.Resource.Blob != nil && strings.HasPrefix(c.Resource.MIMEType, "image/"):
		return imageTokens
	case c.Resource != nil:
		return blockOverhead + estimateText(c.Resource.URI) + estimateText(c.Resource.Text)
	case c.Link != nil:
		return blockOverhead + estimateText(c.Link.URI) + estimateText(c.Link.Name) + estimateText(c.Link.Description)
	case c.ToolUse != nil:
		return blockOverhead + estimateText(c.ToolUse.Name) + estimateText(c.ToolUse.Input)
	case c.ToolResult != nil:
		return blockOverhead + estimateContent(c.ToolResult.Content) + estimateText(c.ToolResult.StructuredContent)
	}
	return blockOverhead + estimateText(c.Raw)
}

func estimateTool(t *mcp.Tool) int {
	return toolOverhead + estimateText(t.Name) + estimateText(t.Description) + estimateText(t.InputSchema)
}
