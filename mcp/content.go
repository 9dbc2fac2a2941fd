package mcp

import (
	"encoding/json"
	"fmt"
)

// ContentType is the type of a [Content].
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

// Content is one block of a message or result. Type decides which fields matter. [Text], [Image],
// [Audio], [Embed], [Link], [UseTool] and [ToolResult] make one. A block of an unknown type keeps
// its bytes in Raw and is encoded unchanged.
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

// ToolUse is a model's request to call a tool.
type ToolUse struct {
	ID    string
	Name  string
	Input json.RawMessage // an object
}

// ToolResultContent is the result of a [ToolUse].
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

// Audio returns audio, such as a WAV with the MIME type audio/wav.
func Audio(data []byte, mimeType string) Content {
	return Content{Type: ContentAudio, Data: data, MIMEType: mimeType}
}

// Embed returns an embedded resource.
func Embed(r ResourceContents) Content { return Content{Type: ContentResource, Resource: &r} }

// Link returns a link to a resource.
func Link(r Resource) Content { return Content{Type: ContentResourceLink, Link: &r} }

// UseTool returns a model's request to call a tool. input is a JSON object.
func UseTool(id, name string, input json.RawMessage) Content {
	return Content{Type: ContentToolUse, ToolUse: &ToolUse{ID: id, Name: name, Input: input}}
}

// ToolResult returns the result of the [ToolUse] with the id.
func ToolResult(toolUseID string, content ...Content) Content {
	return Content{Type: ContentToolResult, ToolResult: &ToolResultContent{ToolUseID: toolUseID, Content: content}}
}

// String returns the text of the content: text, the text of an embedded resource, or a short
// description of any other content.
func (c Content) String() string {
	switch {
	case c.Type == ContentText:
		return c.Text
	case c.Resource != nil && c.Resource.Blob == nil:
		return c.Resource.Text
	}
	return c.describeBlock()
}

func (c Content) describeBlock() string {
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
