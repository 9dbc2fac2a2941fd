package mcpwire

import (
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// The rules below say since which revision a member exists. They are built when the first message
// of an older revision is adapted, so a server that speaks only the latest one never builds them.

type since = map[string]mcp.Revision

type members = map[string]shapeRule

func elementsRule(s shapeRule) shapeRule { return shapeRule{elements: &s} }

func listRule(name string, item shapeRule) shapeRule {
	return shapeRule{members: members{name: elementsRule(item)}}
}

func annotationsShape() shapeRule {
	return shapeRule{since: since{"lastModified": mcp.Revision20250618}}
}

func resourceContentsShape() shapeRule { return shapeRule{since: since{"_meta": mcp.Revision20250618}} }

// contentShape converts audio to text before 2025-03-26, resource links before 2025-06-18, and tool
// uses and results before 2025-11-25.
func contentShape() shapeRule {
	return shapeRule{
		convert: convertContent,
		since:   since{"_meta": mcp.Revision20250618, "title": mcp.Revision20250618, "icons": mcp.Revision20251125},
		members: members{"annotations": annotationsShape(), "resource": resourceContentsShape()},
	}
}

func toolShape() shapeRule {
	return shapeRule{
		since: since{
			"annotations": mcp.Revision20250326, "title": mcp.Revision20250618, "outputSchema": mcp.Revision20250618,
			"_meta": mcp.Revision20250618, "icons": mcp.Revision20251125,
		},
		members: members{"outputSchema": {convert: dropNonObjectSchema}},
	}
}

func resourceShape() shapeRule {
	return shapeRule{
		since:   since{"title": mcp.Revision20250618, "_meta": mcp.Revision20250618, "icons": mcp.Revision20251125},
		members: members{"annotations": annotationsShape()},
	}
}

func promptShape() shapeRule {
	return shapeRule{
		since:   since{"title": mcp.Revision20250618, "_meta": mcp.Revision20250618, "icons": mcp.Revision20251125},
		members: members{"arguments": elementsRule(shapeRule{since: since{"title": mcp.Revision20250618}})},
	}
}

func implementationShape() shapeRule {
	return shapeRule{since: since{
		"title": mcp.Revision20250618, "icons": mcp.Revision20251125, "websiteUrl": mcp.Revision20251125, "description": mcp.Revision20251125,
	}}
}

// samplingMessageShape allows several blocks in one message, and _meta, since 2025-11-25.
func samplingMessageShape() shapeRule {
	content := contentShape()
	return shapeRule{since: since{"_meta": mcp.Revision20251125}, members: members{"content": {convert: joinBlocks, elements: &content}}}
}

// clientCapabilitiesShape allows the modes of elicitation and the parts of sampling since
// 2025-11-25.
func clientCapabilitiesShape() shapeRule {
	return shapeRule{
		since: since{"elicitation": mcp.Revision20250618},
		members: members{
			"elicitation": {since: since{"form": mcp.Revision20251125, "url": mcp.Revision20251125}},
			"sampling":    {since: since{"tools": mcp.Revision20251125, "context": mcp.Revision20251125}},
		},
	}
}

var resultRules = sync.OnceValue(func() map[string]shapeRule {
	return map[string]shapeRule{
		MethodInitialize: {
			since: since{"instructions": mcp.Revision20241105},
			members: members{
				"serverInfo": implementationShape(), "capabilities": {since: since{"completions": mcp.Revision20250326}},
			},
		},
		mcp.MethodListTools:             listRule("tools", toolShape()),
		mcp.MethodListResources:         listRule("resources", resourceShape()),
		mcp.MethodListResourceTemplates: listRule("resourceTemplates", resourceShape()),
		mcp.MethodListPrompts:           listRule("prompts", promptShape()),
		mcp.MethodReadResource:          listRule("contents", resourceContentsShape()),
		mcp.MethodGetPrompt:             listRule("messages", shapeRule{members: members{"content": contentShape()}}),
		mcp.MethodCallTool: {
			since: since{"structuredContent": mcp.Revision20250618},
			members: members{
				"content":           elementsRule(contentShape()),
				"structuredContent": {convert: dropNonObject}, // any JSON value since 2026-07-28
			},
		},
		mcp.MethodCreateMessage: {members: samplingMessageShape().members},
		mcp.MethodListRoots:     listRule("roots", shapeRule{since: since{"_meta": mcp.Revision20250618}}),
	}
})

var paramRules = sync.OnceValue(func() map[string]shapeRule {
	return map[string]shapeRule{
		MethodInitialize:         {members: members{"clientInfo": implementationShape(), "capabilities": clientCapabilitiesShape()}},
		mcp.MethodComplete:       {since: since{"context": mcp.Revision20250618}},
		mcp.NotificationProgress: {since: since{"message": mcp.Revision20250326}},
		mcp.MethodElicit: {
			since:   since{"mode": mcp.Revision20251125, "elicitationId": mcp.Revision20251125, "url": mcp.Revision20251125},
			members: members{"requestedSchema": {convert: adaptForm}},
		},
		mcp.MethodCreateMessage: {
			since:   since{"tools": mcp.Revision20251125, "toolChoice": mcp.Revision20251125},
			members: listRule("messages", samplingMessageShape()).members,
		},
	}
})

func convertContent(r mcp.Revision, raw []byte) ([]byte, bool) {
	since := mcp.Revision("")
	switch typ := rawjson.Lookup(raw, "type"); string(typ) {
	case `"audio"`:
		since = mcp.Revision20250326
	case `"resource_link"`:
		since = mcp.Revision20250618
	case `"tool_use"`, `"tool_result"`:
		since = mcp.Revision20251125
	}
	if r >= since {
		return nil, false
	}
	var c mcp.Content
	if c.UnmarshalJSON(raw) != nil {
		return nil, false
	}
	t := mcp.Text(c.String())
	out, err := t.MarshalJSON()
	return out, err == nil
}

func dropNonObject(_ mcp.Revision, raw []byte) ([]byte, bool) { return nil, !rawjson.IsObject(raw) }

// dropNonObjectSchema drops an output schema that does not describe an object. Such schemas are
// legal from 2026-07-28 on.
func dropNonObjectSchema(_ mcp.Revision, raw []byte) ([]byte, bool) {
	return nil, string(rawjson.Lookup(raw, "type")) != `"object"`
}

// joinBlocks joins the blocks of a message into one text, because a message holds one block before
// 2025-11-25.
func joinBlocks(r mcp.Revision, raw []byte) ([]byte, bool) {
	if r >= mcp.Revision20251125 || rawjson.IsObject(raw) {
		return nil, false
	}
	var blocks []mcp.Content
	if mcp.Decode(raw, &blocks) != nil {
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
	t := mcp.Text(strings.Join(texts, "\n"))
	out, err := t.MarshalJSON()
	return out, err == nil
}
