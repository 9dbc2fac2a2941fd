package hub

import (
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/wirename"
)

// separator stands between the server's name and the tool's on the wire.
const separator = wirename.Separator

// wireName returns the name on the wire of a thing of a server.
func wireName(server, thing string) string { return wirename.Of(server, thing) }

// The keys of _meta in the definition of a tool or prompt whose name on the wire does not itself say what it is of: the upstream, and
// [Item].Offered. No upstream can set them.
const (
	MetaServer = wirename.MetaServer
	MetaName   = wirename.MetaThing
)

// wireServer returns the name of a server in URIs.
func wireServer(name string) string {
	if p := plainName(name); p == name {
		return p
	}
	return plainName(name) + wirename.Digest(name)
}

// plainName replaces what names on the wire cannot hold.
func plainName(name string) string { return wirename.Plain(name) }

// withoutForgedMeta returns a definition without what only the hub says in _meta.
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

// foreignMeta returns the members of a definition's _meta but the hub's own, and whether there are such.
func foreignMeta(raw json.RawMessage) (members []byte, forged bool) {
	for it := rawjson.Object(raw); it.Next(); {
		if string(it.Key) != "_meta" || !rawjson.IsObject(it.Value) {
			continue
		}
		members, _ = rawjson.AppendMembers(nil, it.Value, func(key []byte) bool {
			ours := string(key) == MetaServer || string(key) == MetaName
			forged = forged || ours
			return ours
		})
	}
	return members, forged
}

// wireDefinition returns the definition of an item under its name on the wire, with what it is of where that name does not say it.
func (item *Item) wireDefinition() json.RawMessage {
	raw := replaceText(item.LocalDefinition, "name", item.WireName)
	if !wirename.Marked(item.WireName) {
		return raw
	}
	members, _ := foreignMeta(raw)
	if len(members) > 0 {
		members = append(members, ',')
	}
	members = rawjson.AppendString(append(members, `"`+MetaServer+`":`...), item.Upstream.name)
	members = rawjson.AppendString(append(members, `,"`+MetaName+`":`...), item.LocalName)
	return rawjson.Set(raw, "_meta", wrapObject(members))
}

func wrapObject(members []byte) []byte { return append(append([]byte{'{'}, members...), '}') }

// foldName is a name without the differences that models lose: the case, and which of -, _ and . stands between words.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '-', '.', '/', ' ', ':':
			return '_'
		}
		return r
	}, strings.ToLower(name))
}
