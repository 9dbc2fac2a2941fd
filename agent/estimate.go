package agent

import (
	"strings"

	"github.com/dowel-mcp/dowel/internal/tokencount"
	"github.com/dowel-mcp/dowel/mcp"
)

// Estimates in tokens. Package tokencount estimates texts.
const (
	messageOverhead    = 4 // added to the content of a message
	blockOverhead      = 8
	imageTokens        = 1500 // whatever its size
	audioBytesPerToken = 1600
)

func estimateText[T ~string | ~[]byte](text T) int { return tokencount.EstimateText(text) }

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
	return tokencount.EstimateTool(t.Name, t.Description, t.InputSchema)
}
