package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestAudit(t *testing.T) {
	h := hub.New(nil)
	defer h.Close()
	h.Apply([]hub.Definition{{Name: "every", Target: everything.New()}}, "the test begins")
	h.Settle(t.Context())
	g := gateway.New(h, nil)
	defer g.Close()
	var log bytes.Buffer
	mask := func(text string) string { return strings.ReplaceAll(text, "secret", "****") }
	audited := mcp.Chain(g, gateway.Audit(&log, gateway.AuditOptions{Arguments: true, Mask: mask}))
	c, err := client.Dial(t.Context(), audited, &client.Options{Info: mcp.Implementation{Name: "auditor", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tool := range []string{"every__echo", "every__test_error_handling", "nobody__echo"} {
		_, _ = client.Call[string](t.Context(), c, tool, map[string]string{"message": "a secret"}) // the log has the outcome
	}
	_, _ = c.ReadResource(t.Context(), "test://static-text")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, _ = audited.ServeMCP(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"every__slow","arguments":{"seconds":9}}`), Revision: mcp.LatestRevision})
	var got []audit.Record
	for line := range strings.Lines(log.String()) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err, line)
		}
		got = append(got, r)
	}
	if len(got) != 5 {
		t.Fatalf("%d records:\n%s", len(got), log.String())
	}
	for i, want := range []audit.Record{
		{Server: "every", Name: "echo", Outcome: "ok"}, {Server: "every", Name: "test_error_handling", Outcome: "tool error"},
		{Name: "nobody__echo", Outcome: "error"}, {Server: "every", Name: "test://static-text", Outcome: "ok"},
		{Server: "every", Name: "slow", Outcome: "cancelled"},
	} {
		r := got[i]
		if r.Server != want.Server || r.Name != want.Name || r.Outcome != want.Outcome || r.Time.IsZero() || r.Sent == 0 || i < 4 && r.Client != "auditor" {
			t.Errorf("record %d is %+v, want %+v", i, r, want)
		}
	}
	if string(got[0].Arguments) != `{"message":"a ****"}` || got[0].Received == 0 {
		t.Errorf("%+v", got[0])
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("a secret is in the log")
	}
}
