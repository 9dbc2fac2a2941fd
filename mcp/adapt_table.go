package mcp

import (
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// The rules below say since which revision a member exists. They are built when the first message
// of an older revision is adapted, so a server that speaks only the latest one never builds them.

type since = map[string]Revision

type members = map[string]shapeRule

func elementsRule(s shapeRule) shapeRule { return shapeRule{elements: &s} }

func listRule(name string, item shapeRule) shapeRule {
	return shapeRule{members: members{name: elementsRule(item)}}
}

func annotationsShape() shapeRule { return shapeRule{since: since{"lastModified": Revision20250618}} }

func resourceContentsShape() shapeRule { return shapeRule{since: since{"_meta": Revision20250618}} }

// contentShape converts audio to text before 2025-03-26, resource links before 2025-06-18, and tool
// uses and results before 2025-11-25.
func contentShape() shapeRule {
	return shapeRule{
		convert: convertContent,
		since:   since{"_meta": Revision20250618, "title": Revision20250618, "icons": Revision20251125},
		members: members{"annotations": annotationsShape(), "resource": resourceContentsShape()},
	}
}

func toolShape() shapeRule {
	return shapeRule{
		since: since{
			"annotations": Revision20250326, "title": Revision20250618, "outputSchema": Revision20250618,
			"_meta": Revision20250618, "icons": Revision20251125,
		},
		members: members{"outputSchema": {convert: dropNonObjectSchema}},
	}
}

func resourceShape() shapeRule {
	return shapeRule{
		since:   since{"title": Revision20250618, "_meta": Revision20250618, "icons": Revision20251125},
		members: members{"annotations": annotationsShape()},
	}
}

func promptShape() shapeRule {
	return shapeRule{
		since:   since{"title": Revision20250618, "_meta": Revision20250618, "icons": Revision20251125},
		members: members{"arguments": elementsRule(shapeRule{since: since{"title": Revision20250618}})},
	}
}

func implementationShape() shapeRule {
	return shapeRule{since: since{
		"title": Revision20250618, "icons": Revision20251125, "websiteUrl": Revision20251125, "description": Revision20251125,
	}}
}

// samplingMessageShape allows several blocks in one message, and _meta, since 2025-11-25.
func samplingMessageShape() shapeRule {
	content := contentShape()
	return shapeRule{since: since{"_meta": Revision20251125}, members: members{"content": {convert: joinBlocks, elements: &content}}}
}

// clientCapabilitiesShape allows the modes of elicitation and the parts of sampling since
// 2025-11-25.
func clientCapabilitiesShape() shapeRule {
	return shapeRule{
		since: since{"elicitation": Revision20250618},
		members: members{
			"elicitation": {since: since{"form": Revision20251125, "url": Revision20251125}},
			"sampling":    {since: since{"tools": Revision20251125, "context": Revision20251125}},
		},
	}
}

var resultRules = sync.OnceValue(func() map[string]shapeRule {
	return map[string]shapeRule{
		MethodInitialize: {
			since: since{"instructions": Revision20241105},
			members: members{
				"serverInfo": implementationShape(), "capabilities": {since: since{"completions": Revision20250326}},
			},
		},
		MethodListTools:             listRule("tools", toolShape()),
		MethodListResources:         listRule("resources", resourceShape()),
		MethodListResourceTemplates: listRule("resourceTemplates", resourceShape()),
		MethodListPrompts:           listRule("prompts", promptShape()),
		MethodReadResource:          listRule("contents", resourceContentsShape()),
		MethodGetPrompt:             listRule("messages", shapeRule{members: members{"content": contentShape()}}),
		MethodCallTool: {
			since: since{"structuredContent": Revision20250618},
			members: members{
				"content":           elementsRule(contentShape()),
				"structuredContent": {convert: dropNonObject}, // any JSON value since 2026-07-28
			},
		},
		MethodCreateMessage: {members: samplingMessageShape().members},
		MethodListRoots:     listRule("roots", shapeRule{since: since{"_meta": Revision20250618}}),
	}
})

var paramRules = sync.OnceValue(func() map[string]shapeRule {
	return map[string]shapeRule{
		MethodInitialize:     {members: members{"clientInfo": implementationShape(), "capabilities": clientCapabilitiesShape()}},
		MethodComplete:       {since: since{"context": Revision20250618}},
		NotificationProgress: {since: since{"message": Revision20250326}},
		MethodElicit: {
			since:   since{"mode": Revision20251125, "elicitationId": Revision20251125, "url": Revision20251125},
			members: members{"requestedSchema": {convert: adaptForm}},
		},
		MethodCreateMessage: {
			since:   since{"tools": Revision20251125, "toolChoice": Revision20251125},
			members: listRule("messages", samplingMessageShape()).members,
		},
	}
})

func convertContent(r Revision, raw []byte) ([]byte, bool) {
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
	if c.parseContent(raw) != nil {
		return nil, false
	}
	t := Text(c.String())
	out, err := t.appendJSON(nil)
	return out, err == nil
}

func dropNonObject(_ Revision, raw []byte) ([]byte, bool) { return nil, !rawjson.IsObject(raw) }

// dropNonObjectSchema drops an output schema that does not describe an object. Such schemas are
// legal from 2026-07-28 on.
func dropNonObjectSchema(_ Revision, raw []byte) ([]byte, bool) {
	return nil, string(rawjson.Lookup(raw, "type")) != `"object"`
}

// joinBlocks joins the blocks of a message into one text, because a message holds one block before
// 2025-11-25.
func joinBlocks(r Revision, raw []byte) ([]byte, bool) {
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
		out, _ := contentShape().adaptValue(r, it.Value)
		return out, true
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.String()
	}
	t := Text(strings.Join(texts, "\n"))
	out, err := t.appendJSON(nil)
	return out, err == nil
}
