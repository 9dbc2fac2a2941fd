package server_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// report runs a tool that reports progress, and returns what the peer got.
func report(t *testing.T, token string, fn func(ctx context.Context)) []string {
	t.Helper()
	s := newServer()
	server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (struct{}, error) {
		fn(ctx)
		return struct{}{}, nil
	})
	req := request(mcp.MethodCallTool, `{"name":"t"}`)
	if token != "" {
		req.ProgressToken = []byte(token)
	}
	want(t, serve(t, s, req), `{"content":[]}`)
	return req.Peer.(*peer).params()
}

func progressOf(token string, values ...string) (all []string) {
	for _, v := range values {
		all = append(all, `{"progressToken":`+token+`,"progress":`+v+`}`)
	}
	return all
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := report(t, `"progress-test-1"`, func(ctx context.Context) {
			for _, done := range []float64{0, 50, 100} {
				server.Progress(ctx, done, 100, "")
				time.Sleep(50 * time.Millisecond)
			}
		})
		want(t, fmt.Sprint(got), `[{"progressToken":"progress-test-1","progress":0,"total":100} {"progressToken":"progress-test-1","progress":50,"total":100} {"progressToken":"progress-test-1","progress":100,"total":100}]`)
	})
	got := report(t, "7", func(ctx context.Context) {
		for _, done := range []float64{-1, 0.5, 0.5, 0.25, math.NaN(), math.Inf(1), 1e30, 2e-9, 3} {
			server.Progress(ctx, done, 0, "")
		}
		server.Progress(ctx, 1e31, 0, `say "hi"`)
	})
	want(t, fmt.Sprint(got), fmt.Sprint(append(progressOf("7", "-1", "0.5", "1e+30"), `{"progressToken":7,"progress":1e+31,"message":"say \"hi\""}`)))
	if got := report(t, "", func(ctx context.Context) { server.Progress(ctx, 1, 1, "") }); got != nil {
		t.Errorf("without a token: %v", got)
	}
	server.Progress(t.Context(), 1, 1, "") // no handler, no panic
}

func TestProgressIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := report(t, "1", func(ctx context.Context) {
			for done := range 1000 {
				server.Progress(ctx, float64(done+1), 0, "")
			}
			time.Sleep(25 * time.Millisecond)
			server.Progress(ctx, 2000, 0, "")
			server.Progress(ctx, 2001, 0, "")
			server.Progress(ctx, 2002, 0, "")
		})
		want(t, fmt.Sprint(got), fmt.Sprint(progressOf("1", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "2000", "2002")))

		got = report(t, "1", func(ctx context.Context) {
			for done := range 100 {
				server.Progress(ctx, float64(done+1), 100, "")
			}
			time.Sleep(time.Second)
		})
		if last := got[len(got)-1]; last != `{"progressToken":1,"progress":100,"total":100}` || len(got) != 11 {
			t.Errorf("%d reports, the last %s", len(got), last)
		}
	})
}

func TestNothingAfterTheResult(t *testing.T) {
	s := newServer()
	var kept context.Context
	server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (struct{}, error) {
		kept = ctx
		return struct{}{}, nil
	})
	req := request(mcp.MethodCallTool, `{"name":"t"}`)
	req.ProgressToken, req.LogLevel = []byte("1"), mcp.LevelDebug
	want(t, serve(t, s, req), `{"content":[]}`)
	server.Progress(kept, 1, 1, "")
	server.Log(kept).Error("late")
	if got := req.Peer.(*peer).params(); got != nil {
		t.Errorf("sent %v", got)
	}
}

// TestProgressOfRetries stays above what earlier rounds reported under the same token, as rounds of
// a legacy call have, and begins anew under another.
func TestProgressOfRetries(t *testing.T) {
	s := newServer()
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		server.Progress(ctx, 1, 0, "")
		if _, err := server.Ask[bool](ctx, "k", "?"); err != nil {
			return "", err
		}
		server.Progress(ctx, 2, 0, "")
		return "", nil
	})
	for token, expected := range map[string]string{"7": fmt.Sprint(progressOf("7", "2")), "8": fmt.Sprint(progressOf("8", "1", "2"))} {
		req := request(mcp.MethodCallTool, `{"name":"t"}`)
		req.ProgressToken = []byte("7")
		state := stateOf(t, s, req)
		want(t, fmt.Sprint(req.Peer.(*peer).params()), fmt.Sprint(progressOf("7", "1")))
		again := request(mcp.MethodCallTool, "")
		again.Params = retry(t, []byte(`{"name":"t"}`), map[string]jsonRaw{"k": jsonRaw(accept(`{"value":true}`))}, state)
		again.ProgressToken = []byte(token)
		serve(t, s, again)
		want(t, fmt.Sprint(again.Peer.(*peer).params()), expected)
	}
}
