package agent

import (
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// Estimates, in tokens. Providers count in their own ways, and say how much only once they have replied: until then a token is four
// ASCII characters or any other character, which is near for English and JSON and high for most else, and these are what stands
// around the text, and what pictures take.
const (
	aroundMessage = 4
	aroundTool    = 8
	aroundBlock   = 8
	inImage       = 1500
	bytesOfSound  = 1600 // a token
)

// tokensIn estimates a text.
func tokensIn[T ~string | ~[]byte](text T) int {
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

func sizeOfMessage(m *Message) int {
	return aroundMessage + sizeOfAll(m.Content) + tokensIn(m.Reasoning)
}

func sizeOfAll(content []mcp.Content) (n int) {
	for i := range content {
		n += sizeOf(&content[i])
	}
	return n
}

func sizeOf(c *mcp.Content) int {
	switch {
	case c.Type == mcp.ContentText:
		return tokensIn(c.Text)
	case c.Type == mcp.ContentImage:
		return inImage
	case c.Type == mcp.ContentAudio:
		return aroundBlock + len(c.Data)/bytesOfSound
	case c.Resource != nil && c.Resource.Blob != nil && strings.HasPrefix(c.Resource.MIMEType, "image/"):
		return inImage
	case c.Resource != nil:
		return aroundBlock + tokensIn(c.Resource.URI) + tokensIn(c.Resource.Text)
	case c.Link != nil:
		return aroundBlock + tokensIn(c.Link.URI) + tokensIn(c.Link.Name) + tokensIn(c.Link.Description)
	case c.ToolUse != nil:
		return aroundBlock + tokensIn(c.ToolUse.Name) + tokensIn(c.ToolUse.Input)
	case c.ToolResult != nil:
		return aroundBlock + sizeOfAll(c.ToolResult.Content) + tokensIn(c.ToolResult.StructuredContent)
	}
	return aroundBlock + tokensIn(c.Raw)
}

func sizeOfTool(t *mcp.Tool) int {
	return aroundTool + tokensIn(t.Name) + tokensIn(t.Description) + tokensIn(t.InputSchema)
}
