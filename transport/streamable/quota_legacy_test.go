package streamable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
)

// Events that a client may still resume from count for it, and make room for its answers.
func TestStoredEventsCount(t *testing.T) {
	const size, most = 1 << 20, 4 << 20
	s := testServer(nil)
	server.Tool(s, "huge", "Says much.", func(ctx context.Context, _ struct{}) (string, error) {
		server.Progress(ctx, 1, 1, "") // makes the answer an event stream
		return strings.Repeat("x", size), nil
	})
	opts := limited(transport.Limits{ClientBytes: most})
	_, web := serve(t, s, opts)
	url := web.URL + "/mcp"
	in := append(inSession(open(t, url, mcp.Revision20251125, user, "one"), mcp.Revision20251125), user, "one")
	for i := range 6 {
		got := send(t, "POST", url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"huge","arguments":{},"_meta":{"progressToken":1}}}`, in...)
		if got.status != 200 || len(got.body) < size {
			t.Fatalf("answer %d: %d %.300s", i, got.status, got.body)
		}
		bytes, _, _ := opts.Quota.Used()
		if bytes > most {
			t.Errorf("%d bytes are counted after %d answers", bytes, i+1)
		}
		if i == 0 && bytes < size {
			t.Errorf("%d bytes are counted for an answer of %d that is stored", bytes, size)
		}
	}
}

// The responses of a batch count while they wait for its slowest request. What exceeds the limit
// becomes an error, and the others arrive.
func TestBatchAnswersAreBounded(t *testing.T) {
	const calls, size, most = 40, 1 << 20, 3 << 20
	s := testServer(nil)
	release := make(chan struct{})
	server.Tool(s, "much", "", func(context.Context, struct{}) (string, error) { return strings.Repeat("x", size), nil })
	server.Tool(s, "slow", "", func(context.Context, struct{}) (string, error) { <-release; return "slow", nil })
	opts := limited(transport.Limits{ClientBytes: most})
	opts.JSONFor = -1
	_, web := serve(t, s, opts)
	url := web.URL + "/mcp"
	in := append(inSession(open(t, url, mcp.Revision20250326, user, "one"), mcp.Revision20250326), user, "one")
	calling := func(id int, tool string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, tool)
	}
	batch := []string{calling(1, "slow")}
	for id := range calls {
		batch = append(batch, calling(id+2, "much"))
	}
	answered := make(chan answer)
	go func() { answered <- send(t, "POST", url, "["+strings.Join(batch, ",")+"]", in...) }()
	polltest.Until(t, "two responses are counted", func() bool { bytes, _, _ := opts.Quota.Used(); return bytes > 2*size })
	close(release)
	var answers []struct{ Error *mcp.Error }
	if err := json.Unmarshal([]byte((<-answered).body), &answers); err != nil {
		t.Fatal(err)
	}
	results := 0
	for _, one := range answers {
		switch {
		case one.Error == nil:
			results++
		case !strings.Contains(one.Error.Message, "(clientBytes)"):
			t.Error(one.Error)
		}
	}
	if len(answers) != calls+1 || results != 4 {
		t.Errorf("%d responses and %d results, want %d and 4", len(answers), results, calls+1)
	}
	polltest.Until(t, "nothing is counted", func() bool { bytes, _, _ := opts.Quota.Used(); return bytes == 0 })
}
