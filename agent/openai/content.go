package openai

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// The image types that chat completions take, and the sound types with the API's name for each.
var (
	imageTypes   = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	soundFormats = map[string]string{"audio/wave": "wav", "audio/mpeg": "mp3"}
)

// detectType returns the media type of data. The declared type does not count: a server that
// finds other bytes than declared refuses the conversation, now and with every later message.
func detectType(data []byte) string {
	found := http.DetectContentType(data)
	if found == "application/octet-stream" && len(data) > 1 && data[0] == 0xFF && data[1]&0xE0 == 0xE0 {
		return "audio/mpeg" // a frame without a tag before it
	}
	return found
}

// partOf turns a content block into a part. isMedia is false if it became text. ok is false if
// the block holds no text.
func (m *model) partOf(c mcp.Content) (p part, isMedia, ok bool) {
	if kind, data, mime := mediaOf(c); kind != "" {
		p, omitted := m.mediaPart(kind, data, mime)
		if omitted == "" {
			return p, true, true
		}
		return textPart(omitted), false, true
	}
	text := textOf(c)
	return textPart(text), false, text != ""
}

// mediaOf returns the image or sound in a block, also if it is an embedded resource. kind is
// "image", "audio" or, for other content, "".
func mediaOf(c mcp.Content) (kind string, data []byte, mime string) {
	switch {
	case c.Type == mcp.ContentImage, c.Type == mcp.ContentAudio:
		return string(c.Type), c.Data, c.MIMEType
	case c.Resource != nil && c.Resource.Blob != nil && strings.HasPrefix(c.Resource.MIMEType, "image/"):
		return "image", c.Resource.Blob, c.Resource.MIMEType
	case c.Resource != nil && c.Resource.Blob != nil && strings.HasPrefix(c.Resource.MIMEType, "audio/"):
		return "audio", c.Resource.Blob, c.Resource.MIMEType
	}
	return "", nil, ""
}

// mediaPart returns an image or a sound as a part, or a text that tells the model why the media
// is left out.
func (m *model) mediaPart(kind string, data []byte, mime string) (p part, omitted string) {
	label := fmt.Sprintf("[%s of type %s, %d bytes", kind, mime, len(data))
	found := detectType(data)
	switch format := soundFormats[found]; {
	case len(data) == 0:
		return p, label + "]"
	case m.opts.MaxMedia < 0:
		return p, label + ": left out, since this model is given text only]"
	case len(data) > m.opts.MaxMedia:
		return p, fmt.Sprintf("%s: left out, since it is larger than %d bytes]", label, m.opts.MaxMedia)
	case kind == "audio" && format != "":
		return part{InputAudio: &inputAudio{Data: base64.StdEncoding.EncodeToString(data), Format: format}, Type: "input_audio"}, ""
	case kind == "image" && slices.Contains(imageTypes, found):
		return part{ImageURL: &imageURL{URL: "data:" + found + ";base64," + base64.StdEncoding.EncodeToString(data)}, Type: "image_url"}, ""
	}
	return p, label + ": left out, since its bytes are none of what models take: PNG, JPEG, GIF and WebP, and sounds in WAV and MP3]"
}

// textOf returns the text of a block, or describes it. The block is not media.
func textOf(c mcp.Content) string {
	switch {
	case c.Type == mcp.ContentText:
		return c.Text
	case c.Resource != nil && c.Resource.Blob != nil:
		return fmt.Sprintf("[resource %s of type %s, %d bytes: binary, left out]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
	case c.Resource != nil:
		return fmt.Sprintf("Resource %s:\n%s", c.Resource.URI, c.Resource.Text)
	case c.Link != nil && c.Link.Description != "":
		return fmt.Sprintf("[link to %s: %s (%s)]", c.Link.Name, c.Link.URI, c.Link.Description)
	}
	return c.String()
}

// resultText returns the text of a tool's result, and its media, which a tool message cannot
// hold: they follow in a message of the user.
func (m *model) resultText(r *mcp.ToolResultContent) (text string, media []part) {
	var lines []string
	for _, c := range r.Content {
		p, isMedia, ok := m.partOf(c)
		switch {
		case isMedia:
			kind, data, mime := mediaOf(c)
			lines = append(lines, fmt.Sprintf("[%s of type %s, %d bytes: it follows behind the results]", kind, mime, len(data)))
			media = append(media, p)
		case ok:
			lines = append(lines, *p.Text)
		}
	}
	if len(r.StructuredContent) > 0 && len(lines) == 0 {
		lines = append(lines, string(r.StructuredContent))
	}
	text = strings.Join(lines, "\n")
	if strings.TrimSpace(text) == "" {
		text = "(The tool has returned nothing.)"
	}
	if r.IsError {
		text = "Error: " + text
	}
	return text, media
}
