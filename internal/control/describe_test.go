package control_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/control"
)

// Every server is listed in each state, with reason and advice.
func TestRows(t *testing.T) {
	h := hub.New(&hub.Options{MinBackoff: time.Hour})
	t.Cleanup(func() { h.Close() })
	h.Apply([]hub.Definition{
		{Name: "ready", Target: everything.New(), Origin: "built in"},
		{Name: "failed", Target: "http://127.0.0.1:1/mcp", Origin: "http://127.0.0.1:1/mcp"},
		{Name: "off", Hold: hub.Hold{Status: hub.Disabled, Reason: "it is switched off"}, Origin: "npx off"},
		{Name: "wild", Hold: hub.Hold{Status: hub.NeedsTrust, Reason: "it came with the project"}},
		{Name: "unset", Hold: hub.Hold{Status: hub.NeedsConfiguration, Reason: "TOKEN is not set"}},
	}, "the test begins")
	h.Settle(t.Context())
	page := control.StatusDocument(&controller{hub: h}, "/console/")
	get := func(path string) *httptest.ResponseRecorder {
		t.Helper()
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	var s control.Status
	if err := json.Unmarshal(get("/status.json").Body.Bytes(), &s); err != nil || len(s.Servers) != 5 {
		t.Fatalf("%+v, %v", s, err)
	}
	for i, want := range []struct {
		name          string
		status        hub.Status
		cause, origin string
	}{
		{"ready", hub.Ready, "connected in", "built in"},
		{"failed", hub.Failed, "could not be started", "http://127.0.0.1:1/mcp"},
		{"off", hub.Disabled, "it is switched off", "npx off"},
		{"wild", hub.NeedsTrust, "it came with the project", ""},
		{"unset", hub.NeedsConfiguration, "TOKEN is not set", ""},
	} {
		got := s.Servers[i]
		if got.Name != want.name || got.Status != want.status || !strings.Contains(got.Cause, want.cause) || got.Origin != want.origin || got.Since.IsZero() {
			t.Errorf("%+v, want %+v", got, want)
		}
		if failed := got.Status == hub.Failed; failed != (got.Problem != "") || failed != (got.Advice != "") || failed != !got.Next.IsZero() || failed != (got.Attempt == 1) {
			t.Errorf("%+v", got)
		}
	}
	if s.Servers[0].Tools == 0 || s.Servers[0].Prompts == 0 || s.Servers[0].Resources == 0 || s.Servers[0].Era != "modern" || s.Servers[1].Tools != 0 {
		t.Errorf("%+v", s.Servers[:2])
	}
	if w := get("/"); w.Code != http.StatusFound || w.Header().Get("Location") != "/console/" {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
	for _, path := range []string{"/v1/status", "/v1/reload", "/none"} {
		if w := get(path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Logs contain the states and the lines of stderr, the history first and then new events.
func TestLogs(t *testing.T) {
	c, did, _ := running(t)
	var states []string
	for e, err := range c.Logs(t.Context(), "one/two", false) {
		if err != nil || e.Server != "one/two" {
			t.Fatalf("%+v, %v", e, err)
		}
		states = append(states, e.Kind+" "+e.Status.String()+" "+e.Cause)
	}
	if len(states) != 2 || states[0] != "state starting the test begins" || !strings.HasPrefix(states[1], "state ready connected in") {
		t.Errorf("%q", states)
	}
	received := 0
	for e, err := range c.Logs(t.Context(), "one/two", true) {
		if err != nil {
			t.Fatal(err)
		}
		if received++; received == 2 {
			did.hub.Upstream("one/two").Restart("the test wants it")
		}
		if e.Cause == "the test wants it" {
			break
		}
	}
	for _, err := range c.Logs(t.Context(), "three", false) {
		if err == nil || !strings.Contains(err.Error(), "no such server") {
			t.Error(err)
		}
	}
}
