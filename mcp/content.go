package mcp

import (
	"encoding/json"
	"fmt"
)

// ContentType says what a [Content] holds.
type ContentType string

const (
	ContentText         ContentType = "text"
	ContentImage        ContentType = "image"
	ContentAudio        ContentType = "audio"
	ContentResource     ContentType = "resource"      // embedded
	ContentResourceLink ContentType = "resource_link" // from 2025-06-18
	ContentToolUse      ContentType = "tool_use"      // sampling only
	ContentToolResult   ContentType = "tool_result"   // sampling only
)

// Content is one block of a message or result. Which fields count depends on Type; make one with [Text], [Image],
// [Audio], [Embed], [Link], [UseTool] or [ToolResult]. A block of a type that is not known keeps its bytes in Raw and is
// written back as it was.
type Content struct {
	Type        ContentType
	Text        string
	Data        []byte // image and audio, decoded
	MIMEType    string // image and audio
	Resource    *ResourceContents
	Link        *Resource
	ToolUse     *ToolUse
	ToolResult  *ToolResultContent
	Annotations *Annotations
	Meta        Meta
	Raw         json.RawMessage
}

// ToolUse is a model's wish to call a tool.
type ToolUse struct {
	ID    string
	Name  string
	Input json.RawMessage // an object
}

// ToolResultContent answers a [ToolUse].
type ToolResultContent struct {
	ToolUseID         string
	Content           []Content
	StructuredContent json.RawMessage
	IsError           bool
}

// Text returns text content.
func Text(text string) Content { return Content{Type: ContentText, Text: text} }

// Image returns an image, such as a PNG with the MIME type image/png.
func Image(data []byte, mimeType string) Content {
	return Content{Type: ContentImage, Data: data, MIMEType: mimeType}
}

// Audio returns a sound, such as a WAV with the MIME type audio/wav.
func Audio(data []byte, mimeType string) Content {
	return Content{Type: ContentAudio, Data: data, MIMEType: mimeType}
}

// Embed returns an embedded resource.
func Embed(r ResourceContents) Content { return Content{Type: ContentResource, Resource: &r} }

// Link returns a link to a resource.
func Link(r Resource) Content { return Content{Type: ContentResourceLink, Link: &r} }

// UseTool returns a model's wish to call a tool.
func UseTool(id, name string, input json.RawMessage) Content {
	return Content{Type: ContentToolUse, ToolUse: &ToolUse{ID: id, Name: name, Input: input}}
}

// ToolResult returns the answer to a [ToolUse].
func ToolResult(toolUseID string, content ...Content) Content {
	return Content{Type: ContentToolResult, ToolResult: &ToolResultContent{ToolUseID: toolUseID, Content: content}}
}

// Contents turns content into the contents of the resource with the given URI: text into text, an image or sound into
// binary data with its MIME type, an embedded resource into itself.
func (c Content) Contents(uri, mimeType string) ResourceContents {
	if c.MIMEType != "" {
		mimeType = c.MIMEType
	}
	switch {
	case c.Resource != nil:
		r := *c.Resource
		if r.URI == "" {
			r.URI = uri
		}
		if r.MIMEType == "" {
			r.MIMEType = mimeType
		}
		return r
	case c.Type == ContentImage || c.Type == ContentAudio:
		data := c.Data
		if data == nil {
			data = []byte{}
		}
		return ResourceContents{URI: uri, MIMEType: mimeType, Blob: data, Meta: c.Meta}
	}
	return ResourceContents{URI: uri, MIMEType: mimeType, Text: c.Text, Meta: c.Meta}
}

// String returns what of the content can be read as text: text itself, text of an embedded resource, and a short
// description of anything else.
func (c Content) String() string {
	switch {
	case c.Type == ContentText:
		return c.Text
	case c.Resource != nil && c.Resource.Blob == nil:
		return c.Resource.Text
	}
	return c.describe()
}

func (c Content) describe() string {
	switch {
	case c.Type == ContentImage || c.Type == ContentAudio:
		return fmt.Sprintf("[%s, %s, %d bytes]", c.Type, c.MIMEType, len(c.Data))
	case c.Resource != nil:
		return fmt.Sprintf("[resource %s, %s, %d bytes]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
	case c.Link != nil:
		return fmt.Sprintf("[link to %s: %s]", c.Link.Name, c.Link.URI)
	case c.ToolUse != nil:
		return fmt.Sprintf("[call of %s: %s]", c.ToolUse.Name, c.ToolUse.Input)
	case c.ToolResult != nil:
		return fmt.Sprintf("[result of %s]", c.ToolResult.ToolUseID)
	}
	return fmt.Sprintf("[%s]", c.Type)
}
