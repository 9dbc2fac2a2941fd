package anthropic

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// imageTypes are the types that the API takes.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// resultBlock turns a tool's result into a block. The API demands text, and only text, in a result
// that is an error.
func (w *turnWriter) resultBlock(r *mcp.ToolResultContent) block {
	result := block{ToolUseID: w.takeCallID(r.ToolUseID), IsError: r.IsError, Type: "tool_result"}
	for _, c := range r.Content {
		b := w.contentBlock(c)
		if r.IsError && b.Type == "image" {
			b = textBlock(c.String())
		}
		result.Content = appendBlock(result.Content, b)
	}
	if len(result.Content) == 0 && len(r.StructuredContent) > 0 {
		result.Content = appendBlock(nil, textBlock(string(r.StructuredContent)))
	}
	if len(result.Content) == 0 && r.IsError {
		result.Content = appendBlock(nil, textBlock("The tool failed, and did not say why."))
	}
	return result
}

// appendBlock leaves out a text of spaces, which the API refuses.
func appendBlock(blocks []block, b block) []block {
	if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
		return blocks
	}
	return append(blocks, b)
}

// contentBlock turns content of the user or of a tool into a text or an image.
func (m *model) contentBlock(c mcp.Content) block {
	switch {
	case c.Type == mcp.ContentText:
		return textBlock(c.Text)
	case c.Type == mcp.ContentImage:
		return m.imageBlock("An image", c.Data, c.MIMEType)
	case c.Type == mcp.ContentAudio:
		return textBlock(fmt.Sprintf("[A sound of type %s, %d bytes: you cannot hear it.]", c.MIMEType, len(c.Data)))
	case c.Resource != nil:
		return m.resourceBlock(c.Resource)
	case c.Link != nil:
		return textBlock(describeLink(c.Link))
	}
	return textBlock(c.String())
}

func (m *model) resourceBlock(r *mcp.ResourceContents) block {
	if r.Blob == nil {
		return textBlock(fmt.Sprintf("[The resource %s%s:]\n%s", r.URI, ofType(r.MIMEType), r.Text))
	}
	if strings.HasPrefix(r.MIMEType, "image/") {
		return m.imageBlock("The resource "+r.URI+", an image", r.Blob, r.MIMEType)
	}
	return textBlock(fmt.Sprintf("[The resource %s%s, %d bytes: it is not text, and cannot be shown.]", r.URI, ofType(r.MIMEType), len(r.Blob)))
}

func ofType(mimeType string) string {
	if mimeType == "" {
		return ""
	}
	return " of type " + mimeType
}

func describeLink(r *mcp.Resource) string {
	text := fmt.Sprintf("[A link to the resource %s, %s%s", r.Name, r.URI, ofType(r.MIMEType))
	if r.Description != "" {
		text += ": " + r.Description
	}
	return text + "]"
}

// imageBlock returns an image, or a text that tells the model why it is left out. The type is
// detected from the bytes: the API refuses the whole request if they are of another type than
// declared. label names the image in the text.
func (m *model) imageBlock(label string, data []byte, mimeType string) block {
	found := http.DetectContentType(data)
	switch {
	case !slices.Contains(imageTypes, found):
		return textBlock(fmt.Sprintf("[%s%s, %d bytes: only JPEG, PNG, GIF and WebP can be shown.]", label, ofType(mimeType), len(data)))
	case m.opts.MaxMedia < 0:
		return textBlock(fmt.Sprintf("[%s%s, %d bytes: it is left out, since this model is given text only.]", label, ofType(found), len(data)))
	case len(data) > m.opts.MaxMedia:
		return textBlock(fmt.Sprintf("[%s%s, %d bytes: more than %d cannot be shown.]", label, ofType(found), len(data), m.opts.MaxMedia))
	}
	source := &imageSource{Data: base64.StdEncoding.EncodeToString(data), MediaType: found, Type: "base64"}
	return block{Source: source, Type: "image"}
}
