package anthropic

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/dowel-mcp/dowel/mcp"
)

// images are the types that the API takes.
var images = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// piece is content as the model can take it: a text or an image.
type piece struct {
	text  string
	image *sdk.ImageBlockParam
}

// block is the piece as a part of a message; none where it is blank, which the API refuses.
func (p piece) block() []sdk.ContentBlockParamUnion {
	switch {
	case p.image != nil:
		return []sdk.ContentBlockParamUnion{{OfImage: p.image}}
	case strings.TrimSpace(p.text) == "":
		return nil
	}
	return []sdk.ContentBlockParamUnion{sdk.NewTextBlock(p.text)}
}

// part is the piece as a part of a tool's result.
func (p piece) part() []sdk.ToolResultBlockParamContentUnion {
	switch {
	case p.image != nil:
		return []sdk.ToolResultBlockParamContentUnion{{OfImage: p.image}}
	case strings.TrimSpace(p.text) == "":
		return nil
	}
	return []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: p.text}}}
}

// result is a tool's result. One that is an error has to have content, and text only.
func (t *turns) result(r *mcp.ToolResultContent) *sdk.ToolResultBlockParam {
	res := &sdk.ToolResultBlockParam{ToolUseID: t.sent(r.ToolUseID)}
	if r.IsError {
		res.IsError = param.NewOpt(true)
	}
	for _, c := range r.Content {
		p := t.piece(c)
		if r.IsError && p.image != nil {
			p = piece{text: c.String()}
		}
		res.Content = append(res.Content, p.part()...)
	}
	if len(res.Content) == 0 && len(r.StructuredContent) > 0 {
		res.Content = piece{text: string(r.StructuredContent)}.part()
	}
	if len(res.Content) == 0 && r.IsError {
		res.Content = piece{text: "The tool failed, and did not say why."}.part()
	}
	return res
}

// piece is content of the user or of a tool.
func (m *Model) piece(c mcp.Content) piece {
	switch {
	case c.Type == mcp.ContentText:
		return piece{text: c.Text}
	case c.Type == mcp.ContentImage:
		return m.image("An image", c.Data, c.MIMEType)
	case c.Type == mcp.ContentAudio:
		return piece{text: fmt.Sprintf("[A sound of type %s, %d bytes: you cannot hear it.]", c.MIMEType, len(c.Data))}
	case c.Resource != nil:
		return m.resource(c.Resource)
	case c.Link != nil:
		return piece{text: link(c.Link)}
	}
	return piece{text: c.String()}
}

func (m *Model) resource(r *mcp.ResourceContents) piece {
	if r.Blob == nil {
		return piece{text: fmt.Sprintf("[The resource %s%s:]\n%s", r.URI, ofType(r.MIMEType), r.Text)}
	}
	if strings.HasPrefix(r.MIMEType, "image/") {
		return m.image("The resource "+r.URI+", an image", r.Blob, r.MIMEType)
	}
	return piece{text: fmt.Sprintf("[The resource %s%s, %d bytes: it is not text, and cannot be shown.]", r.URI, ofType(r.MIMEType), len(r.Blob))}
}

func ofType(mimeType string) string {
	if mimeType == "" {
		return ""
	}
	return " of type " + mimeType
}

func link(r *mcp.Resource) string {
	text := fmt.Sprintf("[A link to the resource %s, %s%s", r.Name, r.URI, ofType(r.MIMEType))
	if r.Description != "" {
		text += ": " + r.Description
	}
	return text + "]"
}

// image is an image, or what is to be said instead. Its type is read from its bytes: the API refuses the whole request where they
// are not as they are said to be.
func (m *Model) image(what string, data []byte, mimeType string) piece {
	found := http.DetectContentType(data)
	switch {
	case !slices.Contains(images, found):
		return piece{text: fmt.Sprintf("[%s%s, %d bytes: only JPEG, PNG, GIF and WebP can be shown.]", what, ofType(mimeType), len(data))}
	case m.opts.MaxMedia < 0:
		return piece{text: fmt.Sprintf("[%s%s, %d bytes: it is left out, since this model is given text only.]", what, ofType(found), len(data))}
	case len(data) > m.opts.MaxMedia:
		return piece{text: fmt.Sprintf("[%s%s, %d bytes: more than %d cannot be shown.]", what, ofType(found), len(data), m.opts.MaxMedia)}
	}
	return piece{image: &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfBase64: &sdk.Base64ImageSourceParam{
		Data: base64.StdEncoding.EncodeToString(data), MediaType: sdk.Base64ImageSourceMediaType(found)}}}}
}
