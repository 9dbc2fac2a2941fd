package mcp_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

type inner struct{ mcp.HandlerFunc }

type noticing struct {
	mcp.Handler
	heard *int
}

func (n noticing) NotifyMCP(context.Context, mcp.Notification) { *n.heard++ }

type extended struct {
	mcp.Handler
	extensions []mcp.Extension
}

func (e extended) Extensions() []mcp.Extension { return e.extensions }

// hasKeys and hasExtensions are the optional interfaces that the comment of [mcp.Handler] names.
type (
	hasKeys       interface{ Keys() *mcp.Keys }
	hasExtensions interface{ Extensions() []mcp.Extension }
)

type keyed struct {
	mcp.Handler
	keys *mcp.Keys
}

func (k keyed) Keys() *mcp.Keys { return k.keys }

// TestChainKeeps what the handler within has, in every combination, unless a middleware has it
// itself.
func TestChainKeeps(t *testing.T) {
	plain := func(next mcp.Handler) mcp.Handler { return mcp.HandlerFunc(next.ServeMCP) }
	one, other := new(mcp.Keys), new(mcp.Keys)
	for _, c := range []struct {
		name           string
		notices, keys  bool // of the handler
		middle         *mcp.Keys
		hears          bool // the middleware
		wantKeys       *mcp.Keys
		atHandler, own int
	}{
		{name: "nothing"},
		{name: "notices", notices: true, atHandler: 1},
		{name: "keys", keys: true, wantKeys: one},
		{name: "both", notices: true, keys: true, wantKeys: one, atHandler: 1},
		{name: "the middleware hears", notices: true, keys: true, hears: true, wantKeys: one, own: 1},
		{name: "the middleware alone hears", hears: true, own: 1},
		{name: "the middleware's keys", notices: true, keys: true, middle: other, wantKeys: other, atHandler: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var atHandler, own int
			var h mcp.Handler = inner{func(context.Context, *mcp.Request) (*mcp.Result, error) { return nil, nil }}
			n, k := noticing{h, &atHandler}, keyed{h, one}
			switch {
			case c.notices && c.keys:
				h = struct {
					mcp.Handler
					mcp.NotificationHandler
					hasKeys
				}{h, n, k}
			case c.notices:
				h = n
			case c.keys:
				h = k
			}
			chain := mcp.Chain(h, plain, func(next mcp.Handler) mcp.Handler {
				switch {
				case c.hears:
					return noticing{next, &own}
				case c.middle != nil:
					return keyed{next, c.middle}
				}
				return next
			}, plain)
			if hears, ok := chain.(mcp.NotificationHandler); ok {
				hears.NotifyMCP(t.Context(), mcp.Notification{})
			}
			if atHandler != c.atHandler || own != c.own {
				t.Errorf("the handler heard %d, the middleware %d", atHandler, own)
			}
			var keys *mcp.Keys
			if has, ok := chain.(hasKeys); ok {
				keys = has.Keys()
			}
			if keys != c.wantKeys {
				t.Error("other keys")
			}
		})
	}
}

// TestChainKeepsTheExtensions where the handler has some, with and without anything else.
func TestChainKeepsTheExtensions(t *testing.T) {
	plain := func(next mcp.Handler) mcp.Handler { return mcp.HandlerFunc(next.ServeMCP) }
	h := extended{inner{}, []mcp.Extension{{ID: "x/e"}}}
	for name, h := range map[string]mcp.Handler{
		"alone": h,
		"with keys": struct {
			extended
			hasKeys
		}{h, keyed{keys: new(mcp.Keys)}},
	} {
		chain := mcp.Chain(h, plain, plain)
		if e, ok := chain.(hasExtensions); !ok || len(e.Extensions()) != 1 || e.Extensions()[0].ID != "x/e" {
			t.Errorf("%s: other extensions", name)
		}
		_, before := h.(hasKeys)
		if _, after := chain.(hasKeys); before != after {
			t.Errorf("%s: keys %v, then %v", name, before, after)
		}
	}
}

type demanding struct {
	mcp.Handler
	scopes []string
}

func (d demanding) Scopes(context.Context, mcp.Principal, string, json.RawMessage) []string {
	return d.scopes
}

// TestChainAddsScopes checks that no middleware takes away a scope that the handler within demands.
func TestChainAddsScopes(t *testing.T) {
	t.Parallel()
	plain := func(next mcp.Handler) mcp.Handler { return mcp.HandlerFunc(next.ServeMCP) }
	demand := func(scopes ...string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler { return demanding{next, scopes} }
	}
	base := inner{func(context.Context, *mcp.Request) (*mcp.Result, error) { return nil, nil }}
	for _, tt := range []struct {
		name    string
		handler mcp.Handler
		want    []string
	}{
		{"none", mcp.Chain(base, plain), nil},
		{"handler", mcp.Chain(demanding{base, []string{"a"}}, plain, plain), []string{"a"}},
		{"middleware", mcp.Chain(base, plain, demand("b"), plain), []string{"b"}},
		{"both", mcp.Chain(demanding{keyed{base, new(mcp.Keys)}, []string{"a"}}, demand("b"), plain), []string{"b", "a"}},
		{"middleware that replaces none", mcp.Chain(demanding{base, []string{"a"}}, demand()), []string{"a"}},
	} {
		var got []string
		if h, ok := tt.handler.(interface {
			Scopes(context.Context, mcp.Principal, string, json.RawMessage) []string
		}); ok {
			got = h.Scopes(t.Context(), mcp.Principal{}, mcp.MethodCallTool, nil)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
