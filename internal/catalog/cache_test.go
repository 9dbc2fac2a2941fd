package catalog

import (
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

func TestNarrowestCache(t *testing.T) {
	public, private := mcp.Cache{TTL: time.Minute, Scope: mcp.CachePublic}, mcp.Cache{TTL: time.Hour, Scope: mcp.CachePrivate}
	for _, tt := range []struct{ a, b, want mcp.Cache }{
		{public, public, public}, {private, private, private}, {public, private, mcp.Cache{TTL: time.Minute, Scope: mcp.CachePrivate}}, {private, public, mcp.Cache{TTL: time.Minute, Scope: mcp.CachePrivate}},
		{public, mcp.Cache{}, mcp.Cache{Scope: mcp.CachePrivate}}, {mcp.Cache{}, public, mcp.Cache{}},
	} {
		if got := NarrowestCache(tt.a, tt.b); got != tt.want {
			t.Errorf("%+v and %+v make %+v, want %+v", tt.a, tt.b, got, tt.want)
		}
	}
}
