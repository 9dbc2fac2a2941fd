package mcp

import (
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// The shapes below say since when a member exists. A revision before that does not get it.

var annotations = shape{since: map[string]Revision{"lastModified": Revision20250618}}

var resourceContents = shape{since: map[string]Revision{"_meta": Revision20250618}}

// content: audio is text before 2025-03-26, a resource link before 2025-06-18, the use of a tool before 2025-11-25.
var content = shape{
	turn:    contentAsText,
	since:   map[string]Revision{"_meta": Revision20250618, "title": Revision20250618, "icons": Revision20251125},
	members: map[string]shape{"annotations": annotations, "resource": resourceContents},
}

var contents = shape{elements: &content}

var tool = shape{
	since: map[string]Revision{
		"annotations": Revision20250326, "title": Revision20250618, "outputSchema": Revision20250618,
		"_meta": Revision20250618, "icons": Revision20251125,
	},
	members: map[string]shape{"outputSchema": {turn: objectSchemaOnly}},
}

var resource = shape{
	since:   map[string]Revision{"title": Revision20250618, "_meta": Revision20250618, "icons": Revision20251125},
	members: map[string]shape{"annotations": annotations},
}

var promptArgument = shape{since: map[string]Revision{"title": Revision20250618}}

var prompt = shape{
	since:   map[string]Revision{"title": Revision20250618, "_meta": Revision20250618, "icons": Revision20251125},
	members: map[string]shape{"arguments": {elements: &promptArgument}},
}

var implementation = shape{since: map[string]Revision{
	"title": Revision20250618, "icons": Revision20251125, "websiteUrl": Revision20251125, "description": Revision20251125,
}}

var serverCapabilities = shape{since: map[string]Revision{"completions": Revision20250326}}

var promptMessage = shape{members: map[string]shape{"content": content}}

// samplingMessage: several blocks in one message, and _meta, since 2025-11-25.
var samplingMessage = shape{
	since:   map[string]Revision{"_meta": Revision20251125},
	members: map[string]shape{"content": {turn: oneBlock, elements: &content}},
}

func list(name string, item shape) shape {
	return shape{members: map[string]shape{name: {elements: &item}}}
}

var resultRules = map[string]shape{
	MethodInitialize: {members: map[string]shape{
		"serverInfo": implementation, "capabilities": serverCapabilities,
	}, since: map[string]Revision{"instructions": Revision20241105}},
	MethodListTools:             list("tools", tool),
	MethodListResources:         list("resources", resource),
	MethodListResourceTemplates: list("resourceTemplates", resource),
	MethodListPrompts:           list("prompts", prompt),
	MethodReadResource:          list("contents", resourceContents),
	MethodGetPrompt:             list("messages", promptMessage),
	MethodCallTool: {
		since: map[string]Revision{"structuredContent": Revision20250618},
		members: map[string]shape{
			"content":           contents,
			"structuredContent": {turn: objectOnly}, // any JSON value since 2026-07-28
		},
	},
	MethodCreateMessage: {members: samplingMessage.members},
	MethodListRoots:     list("roots", shape{since: map[string]Revision{"_meta": Revision20250618}}),
}

var paramRules = map[string]shape{
	MethodInitialize:     {members: map[string]shape{"clientInfo": implementation, "capabilities": clientCapabilities}},
	MethodComplete:       {since: map[string]Revision{"context": Revision20250618}},
	NotificationProgress: {since: map[string]Revision{"message": Revision20250326}},
	MethodElicit: {
		since:   map[string]Revision{"mode": Revision20251125, "elicitationId": Revision20251125, "url": Revision20251125},
		members: map[string]shape{"requestedSchema": {turn: plainForm}},
	},
	MethodCreateMessage: {
		since:   map[string]Revision{"tools": Revision20251125, "toolChoice": Revision20251125},
		members: map[string]shape{"messages": {elements: &samplingMessage}},
	},
}

// clientCapabilities: the modes of elicitation and what sampling may hold, since 2025-11-25.
var clientCapabilities = shape{
	since: map[string]Revision{"elicitation": Revision20250618},
	members: map[string]shape{
		"elicitation": {since: map[string]Revision{"form": Revision20251125, "url": Revision20251125}},
		"sampling":    {since: map[string]Revision{"tools": Revision20251125, "context": Revision20251125}},
	},
}

func contentAsText(r Revision, raw []byte) ([]byte, bool) {
	since := Revision("")
	switch typ := rawjson.Lookup(raw, "type"); string(typ) {
	case `"audio"`:
		since = Revision20250326
	case `"resource_link"`:
		since = Revision20250618
	case `"tool_use"`, `"tool_result"`:
		since = Revision20251125
	}
	if r >= since {
		return nil, false
	}
	var c Content
	if c.parse(raw) != nil {
		return nil, false
	}
	t := Text(c.String())
	out, err := t.AppendJSON(nil)
	return out, err == nil
}

func objectOnly(_ Revision, raw []byte) ([]byte, bool) { return nil, !rawjson.IsObject(raw) }

// objectSchemaOnly leaves out an output schema whose root is no object; those are legal from 2026-07-28 on.
func objectSchemaOnly(_ Revision, raw []byte) ([]byte, bool) {
	return nil, string(rawjson.Lookup(raw, "type")) != `"object"`
}

// oneBlock keeps the text of several blocks as one, before several could stand in one message.
func oneBlock(r Revision, raw []byte) ([]byte, bool) {
	if r >= Revision20251125 || rawjson.IsObject(raw) {
		return nil, false
	}
	var blocks []Content
	if Decode(raw, &blocks) != nil {
		return nil, false
	}
	if len(blocks) == 1 {
		it := rawjson.Array(raw)
		it.Next()
		out, _ := content.apply(r, it.Value)
		return out, true
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.String()
	}
	t := Text(strings.Join(texts, "\n"))
	out, err := t.AppendJSON(nil)
	return out, err == nil
}
