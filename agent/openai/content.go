package openai

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	sdk "github.com/openai/openai-go/v3"
)

type part = sdk.ChatCompletionContentPartUnionParam

// images are the types that chat completions take, and sounds those with the names of their formats.
var (
	images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	sounds = map[string]string{"audio/wave": "wav", "audio/mpeg": "mp3"}
)

// typeOf is the type of what bytes are: a server refuses the whole conversation, from then on, where they are not as they are said
// to be.
func typeOf(data []byte) string {
	found := http.DetectContentType(data)
	if found == "application/octet-stream" && len(data) > 1 && data[0] == 0xFF && data[1]&0xE0 == 0xE0 {
		return "audio/mpeg" // a frame of it, without a tag before
	}
	return found
}

// part turns a block into a part: text, or media where media are wanted and taken. Nothing for an empty text.
func (m *Model) part(c mcp.Content) (p part, isMedia, ok bool) {
	if kind, data, mime := media(c); kind != "" {
		p, left := m.media(kind, data, mime)
		if left == "" {
			return p, true, true
		}
		return sdk.TextContentPart(left), false, true
	}
	text := words(c)
	return sdk.TextContentPart(text), false, text != ""
}

// media returns what is an image or a sound, whether as such or as an embedded resource.
func media(c mcp.Content) (kind string, data []byte, mime string) {
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

// media returns the part of an image or a sound, or in words why it is left out.
func (m *Model) media(kind string, data []byte, mime string) (p part, left string) {
	name := fmt.Sprintf("[%s of type %s, %d bytes", kind, mime, len(data))
	found := typeOf(data)
	switch format := sounds[found]; {
	case len(data) == 0:
		return p, name + "]"
	case m.opts.MaxMedia < 0:
		return p, name + ": left out, since this model is given text only]"
	case len(data) > m.opts.MaxMedia:
		return p, fmt.Sprintf("%s: left out, since it is larger than %d bytes]", name, m.opts.MaxMedia)
	case kind == "audio" && format != "":
		return sdk.InputAudioContentPart(sdk.ChatCompletionContentPartInputAudioInputAudioParam{Data: base64.StdEncoding.EncodeToString(data), Format: format}), ""
	case kind == "image" && slices.Contains(images, found):
		url := "data:" + found + ";base64," + base64.StdEncoding.EncodeToString(data)
		return sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: url}), ""
	}
	return p, name + ": left out, since its bytes are none of what models take: PNG, JPEG, GIF and WebP, and sounds in WAV and MP3]"
}

// words is a block as text.
func words(c mcp.Content) string {
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

// result turns a tool's result into the text of its message, and the media that have to follow.
func (m *Model) result(r *mcp.ToolResultContent) (text string, follow []part) {
	var lines []string
	for _, c := range r.Content {
		p, isMedia, ok := m.part(c)
		switch {
		case isMedia:
			kind, data, mime := media(c)
			lines = append(lines, fmt.Sprintf("[%s of type %s, %d bytes: it follows behind the results]", kind, mime, len(data)))
			follow = append(follow, p)
		case ok:
			lines = append(lines, *p.GetText())
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
	return text, follow
}
