package mcp

import (
	"context"
	"encoding/json"
)

// keyed, extended and scoped are optional interfaces of a handler; see [Handler].
type (
	keyed    interface{ Keys() *Keys }
	extended interface{ Extensions() []Extension }
	scoped   interface {
		Scopes(ctx context.Context, p Principal, method string, params json.RawMessage) []string
	}
)

// keepInterfaces returns outer, extended by the optional interfaces that only inner implements.
func keepInterfaces(outer, inner Handler) Handler {
	k := interfaceKeeper{Handler: outer}
	outerNotices, outerExtensions, outerKeys := k.addFrom(outer)
	outerScopes := len(k.scoped)
	notices, extensions, keys := k.addFrom(inner)
	if notices == outerNotices && extensions == outerExtensions && keys == outerKeys && len(k.scoped) == outerScopes {
		return outer // inner adds no interface
	}
	// An interfaceKeeper without handlers for the other interfaces does nothing in their methods.
	// Keys has no such neutral result, so the method exists only if one of the handlers has it.
	if k.keys != nil {
		return struct {
			interfaceKeeper
			keyed
		}{k, k.keys}
	}
	return k
}

// interfaceKeeper is a Handler with the optional interfaces of the handlers inside it.
type interfaceKeeper struct {
	Handler
	notices  NotificationHandler
	extended extended
	keys     keyed
	scoped   []scoped // all of them: a middleware can demand more scopes, but not fewer
}

// addFrom adds the interfaces of h that k lacks, and reports the interfaces that k then has.
func (k *interfaceKeeper) addFrom(h Handler) (notices, extensions, keys bool) {
	if k.notices == nil {
		k.notices, _ = h.(NotificationHandler)
	}
	if k.extended == nil {
		k.extended, _ = h.(extended)
	}
	if k.keys == nil {
		k.keys, _ = h.(keyed)
	}
	if scopes, ok := h.(scoped); ok {
		k.scoped = append(k.scoped, scopes)
	}
	return k.notices != nil, k.extended != nil, k.keys != nil
}

// NotifyMCP implements [NotificationHandler].
func (k interfaceKeeper) NotifyMCP(ctx context.Context, n Notification) {
	if k.notices != nil {
		k.notices.NotifyMCP(ctx, n)
	}
}

// Extensions implements extended.
func (k interfaceKeeper) Extensions() []Extension {
	if k.extended == nil {
		return nil
	}
	return k.extended.Extensions()
}

// Scopes implements scoped.
func (k interfaceKeeper) Scopes(ctx context.Context, p Principal, method string, params json.RawMessage) []string {
	var all []string
	for _, h := range k.scoped {
		all = append(all, h.Scopes(ctx, p, method, params)...)
	}
	return all
}
