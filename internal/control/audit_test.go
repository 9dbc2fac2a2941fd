package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// readTrail returns the names of the records from a position on, and the page.
func readTrail(t *testing.T, trail *control.AuditTrail, after int64) (names string, page control.AuditPage) {
	t.Helper()
	page, err := trail.Read(after)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		names += r.Name + " "
	}
	return strings.TrimSpace(names), page
}

// A trail in memory keeps the newest records. A reader sees each record once, and is told of a gap.
func TestAuditTrailInMemory(t *testing.T) {
	t.Parallel()
	trail := control.NewAuditTrail("")
	log := audit.NewLog(trail, audit.Options{})
	write := func(name, reason string) {
		log.Write(audit.Record{Time: time.Now(), Method: "tools/call", Name: name, Outcome: "ok", Reason: reason})
	}
	if names, page := readTrail(t, trail, 0); names != "" || page.IsCut {
		t.Error(names, page)
	}
	write("a", "")
	write("b", "")
	names, page := readTrail(t, trail, 0)
	if names != "a b" || page.IsCut {
		t.Error(names, page)
	}
	write("c", "")
	if names, page = readTrail(t, trail, page.Next); names != "c" || page.IsCut {
		t.Error(names, page)
	}
	for i := range 30 {
		write(fmt.Sprint(i), strings.Repeat("x", 50_000))
	}
	names, page = readTrail(t, trail, page.Next)
	if !strings.HasSuffix(names, "28 29") || strings.Contains(names, "c") || !page.IsCut {
		t.Error(names, page.IsCut)
	}
}

// A full trail in memory costs a record little: it copies what it keeps only now and then.
func TestAuditTrailAllocates(t *testing.T) {
	trail := control.NewAuditTrail("")
	line := []byte(strings.Repeat("x", 199) + "\n")
	write := func(n int) {
		for range n {
			if _, err := trail.Write(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(10_000) // it is full
	const n, most = 10_000, 2000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	write(n)
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > most {
		t.Errorf("a record of %d bytes allocates %d bytes, at most %d are allowed", len(line), each, most)
	}
}

// A trail of a file has the records of all processes, but no half-written one. A file that begins
// anew is read from its beginning.
func TestAuditTrailOfFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := control.NewAuditTrail(path)
	if names, _ := readTrail(t, trail, 0); names != "" {
		t.Error(names)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	record := func(name string) string { return `{"method":"tools/call","name":"` + name + `"}` + "\n" }
	write(record("a") + "no record\n" + record("b") + `{"method":"too`)
	names, page := readTrail(t, trail, 0)
	if names != "a b" || page.File != path {
		t.Error(names, page)
	}
	write(record("a") + "no record\n" + record("b") + record("c"))
	if names, page = readTrail(t, trail, page.Next); names != "c" || page.IsCut {
		t.Error(names, page)
	}
	write(record("new"))
	if names, page = readTrail(t, trail, page.Next); names != "new" || !page.IsCut {
		t.Error(names, page)
	}
	write(strings.Repeat(record("filler"), 40_000) + record("last"))
	if names, page = readTrail(t, trail, 0); !strings.HasSuffix(names, "filler last") || !page.IsCut {
		t.Error(len(names), page.IsCut)
	}
}

// definitionLog keeps accepted definitions in memory.
type definitionLog struct {
	mu     sync.Mutex
	record []byte
}

func (l *definitionLog) Update(change func([]byte) []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = change(l.record)
	return nil
}

// addVersion gives a server a tool whose definition has a version.
func addVersion(s *server.Server, version string) {
	s.Remove(server.KindTool, "env")
	server.RawTool(s, mcp.Tool{Name: "env", Description: version, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
}

// The user accepts the definitions that he has seen, and nothing else. What was held back is
// offered at once, and the audit log has who accepted it.
func TestAcceptDefinitions(t *testing.T) {
	t.Parallel()
	s := server.New("shifty", "1", nil)
	addVersion(s, "one")
	h := hub.New(nil)
	defer h.Close()
	h.Apply([]hub.Definition{{Name: "shifty", Target: s, Log: &definitionLog{}, HoldChanged: "accept it"}}, "the test begins")
	h.Settle(t.Context())
	u := h.Upstream("shifty")
	addVersion(s, "two")
	polltest.Until(t, "a changed definition", func() bool { return len(u.ChangedDefinitions()) == 1 })
	trail := control.NewAuditTrail("")
	trail.Log = audit.NewLog(trail, audit.Options{})
	api := control.ConsoleAPI(control.Running{Life: t.Context(), Controller: &controller{h, make(chan string, 1)}, Hub: h, Audit: trail})
	if wrong := askAPI[map[string]string](t, api, "POST", "/v1/servers/shifty/accept", `{"digests":["of another version"]}`); wrong["error"] == "" {
		t.Error("an unseen definition is accepted")
	}
	if n := h.Catalog().Count(u, catalog.Tool); n != 0 {
		t.Errorf("%d tools are offered before", n)
	}
	body, _ := json.Marshal(map[string][]string{"digests": {u.ChangedDefinitions()[0].Digest}})
	if answer := askAPI[map[string]string](t, api, "POST", "/v1/servers/shifty/accept", string(body)); len(answer) != 0 {
		t.Error(answer)
	}
	if n := h.Catalog().Count(u, catalog.Tool); n != 1 || len(u.ChangedDefinitions()) != 0 {
		t.Errorf("%d tools are offered, changed: %v", n, u.ChangedDefinitions())
	}
	askAPI[map[string]string](t, api, "POST", "/v1/servers/shifty/restart", "{}")
	page := askAPI[control.AuditPage](t, api, "GET", "/v1/audit", "")
	if len(page.Records) != 2 || page.Records[0].Method != "definitions/accept" || page.Records[0].Name != "tool env" || page.Records[0].Client != "console" || page.Records[1].Method != "servers/restart" {
		t.Errorf("%+v", page)
	}
}
