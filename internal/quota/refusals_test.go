package quota_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/quota"
)

// Refusals are logged once for each client and minute.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		q := quota.New(quota.Limits{ClientStreams: 1, ClientBytes: 100})
		quota.LogRefusals(q, slog.New(slog.NewTextHandler(&out, nil)))
		logged := func(name string) int { return strings.Count(out.String(), "client="+name+" ") }
		a, b := quota.Client{Name: "a"}, quota.Client{Name: "b"}
		for _, c := range []quota.Client{a, b} {
			if err := q.OpenStream(c); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			wantLimit(t, q.OpenStream(a), true, "clientStreams")
			time.Sleep(time.Second)
		}
		if logged("a") != 1 || logged("b") != 0 {
			t.Errorf("after ten refusals within a minute:\n%s", &out)
		}
		wantLimit(t, q.OpenStream(b), true, "clientStreams")
		time.Sleep(time.Minute)
		wantLimit(t, q.OpenStream(a), true, "clientStreams")
		if logged("a") != 2 || logged("b") != 1 || !strings.Contains(out.String(), "clientStreams") {
			t.Errorf("a minute later:\n%s", &out)
		}
	})
}
