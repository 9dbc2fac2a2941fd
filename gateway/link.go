package gateway

import (
	"bytes"
	"encoding/json"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// rewriteLinks replaces the URIs of resources in a result by the URIs under which the client can
// read them.
func (g *Gateway) rewriteLinks(res *mcp.Result, err error, u *hub.Upstream) (*mcp.Result, error) {
	if err != nil || !bytes.Contains(res.Raw, []byte(`"uri"`)) || len(g.shownUpstreams()) < 2 {
		return res, err
	}
	l := linker{g, g.hub.Catalog(), u}
	raw := mapMember(res.Raw, "content", l.rewriteBlock) // of a tool result
	raw = mapMember(raw, "contents", l.rewriteResource)
	raw = mapMember(raw, "messages", func(message json.RawMessage) json.RawMessage { return mapMember(message, "content", l.rewriteBlock) })
	if &raw[0] == &res.Raw[0] {
		return res, nil
	}
	other := *res
	other.Raw = raw
	return &other, nil
}

// linker replaces the URIs of one upstream's resources.
type linker struct {
	gateway  *Gateway
	catalog  *itemCatalog
	upstream *hub.Upstream
}

// rewriteBlock rewrites a content block that is a resource or a link to one.
func (l linker) rewriteBlock(raw json.RawMessage) json.RawMessage {
	switch kind := rawjson.Lookup(raw, "type"); {
	case rawjson.Is(kind, "resource_link"):
		return l.rewriteResource(raw)
	case rawjson.Is(kind, "resource"):
		return mapMember(raw, "resource", l.rewriteResource)
	}
	return raw
}

// rewriteResource rewrites an object with a URI.
func (l linker) rewriteResource(raw json.RawMessage) json.RawMessage {
	uri, ok := rawjson.String(rawjson.Lookup(raw, "uri"))
	if !ok {
		return raw
	}
	return renameMember(raw, "uri", uri, l.gateway.shownURI(l.catalog, l.upstream, uri))
}

// mapMember returns an object with a member, or each element of an array in it, replaced by its
// image under f. If nothing changes, it returns the object itself.
func mapMember(object json.RawMessage, name string, f func(json.RawMessage) json.RawMessage) json.RawMessage {
	member := rawjson.Lookup(object, name)
	if len(member) == 0 {
		return object
	}
	if member[0] != '[' {
		return replaceMember(object, name, member, f(member))
	}
	all, changed := []byte{'['}, false
	for it := rawjson.Array(member); it.Next(); {
		if len(all) > 1 {
			all = append(all, ',')
		}
		made := f(it.Value)
		changed = changed || &made[0] != &it.Value[0]
		all = append(all, made...)
	}
	if !changed {
		return object
	}
	return rawjson.Replace(object, name, append(all, ']'))
}

// replaceMember returns an object with another value in a member, or the object itself if the value
// is the same slice.
func replaceMember(object json.RawMessage, name string, old, value json.RawMessage) json.RawMessage {
	if &value[0] == &old[0] {
		return object
	}
	return rawjson.Replace(object, name, value)
}
