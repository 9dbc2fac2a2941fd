package gateway

import (
	"bytes"
	"encoding/json"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// linked gives the resources that a result holds or links to the URIs under which the client can read them.
func (g *Gateway) linked(res *mcp.Result, err error, u *hub.Upstream) (*mcp.Result, error) {
	if err != nil || !bytes.Contains(res.Raw, []byte(`"uri"`)) || len(g.view.upstreams()) < 2 {
		return res, err
	}
	l := linker{g.view, g.hub.Catalog(), u}
	raw := within(res.Raw, "content", l.block) // of a tool
	raw = within(raw, "contents", l.resource)
	raw = within(raw, "messages", func(message json.RawMessage) json.RawMessage { return within(message, "content", l.block) })
	if &raw[0] == &res.Raw[0] {
		return res, nil
	}
	other := *res
	other.Raw = raw
	return &other, nil
}

// linker knows what resources of an upstream are called.
type linker struct {
	view     view
	catalog  *hub.Catalog
	upstream *hub.Upstream
}

// block is a content block, which may be a link to a resource, or one.
func (l linker) block(raw json.RawMessage) json.RawMessage {
	switch kind := rawjson.Lookup(raw, "type"); {
	case rawjson.Is(kind, "resource_link"):
		return l.resource(raw)
	case rawjson.Is(kind, "resource"):
		return within(raw, "resource", l.resource)
	}
	return raw
}

// resource is an object with a URI.
func (l linker) resource(raw json.RawMessage) json.RawMessage {
	uri, ok := rawjson.String(rawjson.Lookup(raw, "uri"))
	if !ok {
		return raw
	}
	return rename(raw, "uri", uri, l.view.wire(l.catalog, l.upstream, uri))
}

// within returns an object in which a member, or each element of one that is an array, is what f makes of it. Where f makes
// nothing else of anything, it is the object itself.
func within(object json.RawMessage, name string, f func(json.RawMessage) json.RawMessage) json.RawMessage {
	member := rawjson.Lookup(object, name)
	if len(member) == 0 {
		return object
	}
	if member[0] != '[' {
		return instead(object, name, member, f(member))
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

func instead(object json.RawMessage, name string, was, is json.RawMessage) json.RawMessage {
	if &is[0] == &was[0] {
		return object
	}
	return rawjson.Replace(object, name, is)
}
