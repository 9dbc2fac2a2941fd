package mcp

import (
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// The shapes below say since when a member exists. A revision before that does not get it. They are made when the first
// message of an older revision is adapted: a server of the latest one never needs them.

type since = map[string]Revision

type members = map[string]shape

func each(s shape) shape { return shape{elements: &s} }

func list(name string, item shape) shape { return shape{members: members{name: each(item)}} }

func annotationsShape() shape { return shape{since: since{"lastModified": Revision20250618}} }

func resourceContentsShape() shape { return shape{since: since{"_meta": Revision20250618}} }

// contentShape: audio is text before 2025-03-26, a resource link before 2025-06-18, the use of a tool before 2025-11-25.
func contentShape() shape {
	return shape{
		turn:    contentAsText,
		since:   since{"_meta": Revision20250618, "title": Revision20250618, "icons": Revision20251125},
		members: members{"annotations": annotationsShape(), "resource": resourceContentsShape()},
	}
}

func toolShape() shape {
	return shape{
		since: since{
			"annotations": Revision20250326, "title": Revision20250618, "outputSchema": Revision20250618,
			"_meta": Revision20250618, "icons": Revision20251125,
		},
		members: members{"outputSchema": {turn: objectSchemaOnly}},
	}
}

func resourceShape() shape {
	return shape{
		since:   since{"title": Revision20250618, "_meta": Revision20250618, "icons": Revision20251125},
		members: members{"annotations": annotationsShape()},
	}
}

func promptShape() shape {
	return shape{
		since:   since{"title": Revision20250618, "_meta": Revision20250618, "icons": Revision20251125},
		members: members{"arguments": each(shape{since: since{"title": Revision20250618}})},
	}
}

func implementationShape() shape {
	return shape{since: since{
		"title": Revision20250618, "icons": Revision20251125, "websiteUrl": Revision20251125, "description": Revision20251125,
	}}
}

// samplingMessageShape: several blocks in one message, and _meta, since 2025-11-25.
func samplingMessageShape() shape {
	content := contentShape()
	return shape{since: since{"_meta": Revision20251125}, members: members{"content": {turn: oneBlock, elements: &content}}}
}

// clientCapabilitiesShape: the modes of elicitation and what sampling may hold, since 2025-11-25.
func clientCapabilitiesShape() shape {
	return shape{
		since: since{"elicitation": Revision20250618},
		members: members{
			"elicitation": {since: since{"form": Revision20251125, "url": Revision20251125}},
			"sampling":    {since: since{"tools": Revision20251125, "context": Revision20251125}},
		},
	}
}

var resultRules = sync.OnceValue(func() map[string]shape {
	return map[string]shape{
		MethodInitialize: {
			since: since{"instructions": Revision20241105},
			members: members{
				"serverInfo": implementationShape(), "capabilities": {since: since{"completions": Revision20250326}},
			},
		},
		MethodListTools:             list("tools", toolShape()),
		MethodListResources:         list("resources", resourceShape()),
		MethodListResourceTemplates: list("resourceTemplates", resourceShape()),
		MethodListPrompts:           list("prompts", promptShape()),
		MethodReadResource:          list("contents", resourceContentsShape()),
		MethodGetPrompt:             list("messages", shape{members: members{"content": contentShape()}}),
		MethodCallTool: {
			since: since{"structuredContent": Revision20250618},
			members: members{
				"content":           each(contentShape()),
				"structuredContent": {turn: objectOnly}, // any JSON value since 2026-07-28
			},
		},
		MethodCreateMessage: {members: samplingMessageShape().members},
		MethodListRoots:     list("roots", shape{since: since{"_meta": Revision20250618}}),
	}
})

var paramRules = sync.OnceValue(func() map[string]shape {
	return map[string]shape{
		MethodInitialize:     {members: members{"clientInfo": implementationShape(), "capabilities": clientCapabilitiesShape()}},
		MethodComplete:       {since: since{"context": Revision20250618}},
		NotificationProgress: {since: since{"message": Revision20250326}},
		MethodElicit: {
			since:   since{"mode": Revision20251125, "elicitationId": Revision20251125, "url": Revision20251125},
			members: members{"requestedSchema": {turn: plainForm}},
		},
		MethodCreateMessage: {
			since:   since{"tools": Revision20251125, "toolChoice": Revision20251125},
			members: list("messages", samplingMessageShape()).members,
		},
	}
})

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
		out, _ := contentShape().apply(r, it.Value)
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
