package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

type userKey struct{}

// Users of a gateway whose upstream tells them apart never get each other's private results, and
// what they get stays private.
func TestPrivateResultsOfASharedUpstream(t *testing.T) {
	t.Parallel()
	upstream := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		switch req.Method {
		case mcp.MethodDiscover:
			return &mcp.Result{Raw: json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{}}}`)}, nil
		case mcp.MethodReadResource:
			text := fmt.Sprintf(`{"contents":[{"uri":"x://private","text":"secret of %s"}]}`, req.Header["Authorization"])
			return &mcp.Result{Raw: json.RawMessage(text), Cache: mcp.Cache{TTL: time.Hour, Scope: mcp.CachePrivate}}, nil
		case mcp.MethodListResources:
			return &mcp.Result{Raw: json.RawMessage(`{"resources":[{"uri":"x://private","name":"p"}]}`)}, nil
		}
		return nil, mcp.MethodNotFound(req.Method)
	})
	web := httptest.NewServer(streamable.Handler(upstream, nil))
	t.Cleanup(web.Close)
	g, _ := over(t, hub.Definition{Name: "up", Target: streamable.URL{URL: web.URL, Header: func(ctx context.Context) (http.Header, error) {
		user, _ := ctx.Value(userKey{}).(string)
		return http.Header{"Authorization": {user}}, nil
	}}})
	for range 2 {
		for _, user := range []string{"ada", "bob"} {
			res, err := g.ServeMCP(context.WithValue(t.Context(), userKey{}, user), &mcp.Request{
				Method: mcp.MethodReadResource, Params: json.RawMessage(`{"uri":"x://private"}`), Revision: mcp.LatestRevision,
				Principal: mcp.Principal{ID: user},
			})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(res.Raw), "secret of ["+user+"]") || res.Cache.Scope == mcp.CachePublic {
				t.Errorf("%s got %s with the scope %s", user, res.Raw, res.Cache.Scope)
			}
		}
	}
}
