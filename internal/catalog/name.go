package catalog

import (
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/wirename"
)

// separator separates the server's name from the item's name on the wire.
const separator = wirename.Separator

// wireName returns the name on the wire of a tool or prompt.
func wireName(server, thing string) string { return wirename.Of(server, thing) }

// plainName replaces characters that names on the wire cannot have.
func plainName(name string) string { return wirename.Plain(name) }

// withoutForgedMeta returns a definition without the _meta keys that only the hub may set.
func withoutForgedMeta(raw json.RawMessage) json.RawMessage {
	own, forged := foreignMeta(raw)
	switch {
	case !forged:
		return raw
	case len(own) == 0:
		return rawjson.Set(raw, "_meta", nil)
	}
	return rawjson.Set(raw, "_meta", wrapObject(own))
}

// foreignMeta returns the members of a definition's _meta except the hub's own keys. forged reports
// whether it had any of those.
func foreignMeta(raw json.RawMessage) (members []byte, forged bool) {
	for it := rawjson.Object(raw); it.Next(); {
		if string(it.Key) != "_meta" || !rawjson.IsObject(it.Value) {
			continue
		}
		members, _ = rawjson.AppendMembers(nil, it.Value, func(key []byte) bool {
			ours := string(key) == wirename.MetaServer || string(key) == wirename.MetaThing
			forged = forged || ours
			return ours
		})
	}
	return members, forged
}

// wireDefinition returns the item's definition under WireName. If WireName cannot be mapped back,
// _meta names the server and the item.
func (item *Item[U]) wireDefinition() json.RawMessage {
	raw := replaceText(item.LocalDefinition, "name", item.WireName)
	if !wirename.Marked(item.WireName) {
		return raw
	}
	members, _ := foreignMeta(raw)
	if len(members) > 0 {
		members = append(members, ',')
	}
	members = rawjson.AppendString(append(members, `"`+wirename.MetaServer+`":`...), item.Upstream.Name())
	members = rawjson.AppendString(append(members, `,"`+wirename.MetaThing+`":`...), item.LocalName)
	return rawjson.Set(raw, "_meta", wrapObject(members))
}

// DefinitionWithServer returns the definition of a resource or template under WireName, with the
// name of its server in _meta. Unlike the name of a tool, a URI does not tell it.
func (item *Item[U]) DefinitionWithServer() json.RawMessage {
	members, _ := foreignMeta(item.Definition)
	if len(members) > 0 {
		members = append(members, ',')
	}
	members = rawjson.AppendString(append(members, `"`+wirename.MetaServer+`":`...), item.Upstream.Name())
	return rawjson.Set(item.Definition, "_meta", wrapObject(members))
}

// wrapObject makes an object of encoded members.
func wrapObject(members []byte) []byte { return append(append([]byte{'{'}, members...), '}') }

// foldName returns a name in lower case with _ for other separators, because models confuse them.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '-', '.', '/', ' ', ':':
			return '_'
		}
		return r
	}, strings.ToLower(name))
}
