package transcripts

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// object is any JSON object. Another value decodes as nil.
type object map[string]json.RawMessage

func objectOf(raw json.RawMessage) (o object) {
	_ = json.Unmarshal(raw, &o)
	return o
}

func objectsOf(raw json.RawMessage) (all []object) {
	var elements []json.RawMessage
	_ = json.Unmarshal(raw, &elements)
	for _, element := range elements {
		all = append(all, objectOf(element))
	}
	return all
}

// note notes which members an object has.
func (tl tally) note(place string, o object) {
	for name := range o {
		tl.members[place+": "+name] = true
	}
}

func (r *reader) questionMembers(q message) {
	if q.Params.Mode != "" {
		r.members["elicitation/create: mode"] = true
	}
}

// resultMembers records the members in which revisions differ.
func (r *reader) resultMembers(method string, raw json.RawMessage) {
	result := objectOf(raw)
	for _, name := range []string{"resultType", "ttlMs", "cacheScope"} {
		if result[name] != nil {
			r.members["result: "+name] = true
		}
	}
	for method2, list := range map[string]string{
		mcp.MethodListTools: "tools", mcp.MethodListPrompts: "prompts", mcp.MethodListResources: "resources",
		mcp.MethodListResourceTemplates: "resourceTemplates", mcp.MethodReadResource: "contents",
	} {
		for _, item := range objectsOf(result[list]) {
			if method == method2 {
				r.note(method, item)
			}
		}
	}
	switch method {
	case mcp.MethodCallTool:
		for _, block := range objectsOf(result["content"]) {
			r.contentMembers(block)
		}
		if structured, ok := result["structuredContent"]; ok {
			r.members["structuredContent: "+kind(structured)] = true
		}
	case mcp.MethodGetPrompt:
		for _, m := range objectsOf(result["messages"]) {
			r.contentMembers(objectOf(m["content"]))
		}
	case mcpwire.MethodInitialize:
		r.note("serverInfo", objectOf(result["serverInfo"]))
		r.note("capabilities", objectOf(result["capabilities"]))
	case mcp.MethodDiscover:
		r.note("serverInfo", objectOf(objectOf(result["_meta"])[mcpwire.MetaServerInfo]))
		r.note("capabilities", objectOf(result["capabilities"]))
	}
}

func (tl tally) contentMembers(block object) {
	var name string
	_ = json.Unmarshal(block["type"], &name)
	tl.members["content: "+name] = true
	tl.note(name, block)
	tl.note("annotations", objectOf(block["annotations"]))
}

// kind names the kind of a JSON value.
func kind(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
