//go:build unix

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// watch ends after --timeout, and warns of resources for which the server sends no updates.
func TestWatchInVain(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			out := runDowel(t, "", withTestServer(t, "watch", "test://nope", "test://item/7", "--count", "1", "--timeout", "2s", "--revision", revision)...)
			if out.code != exit.Timeout || !strings.Contains(out.stderr, "0 of 1 changes came: timed out: not done within 2s") || !strings.Contains(out.stderr, "test://nope") {
				t.Errorf("%+v", out)
			}
			if strings.Contains(out.stderr, "test://item/7") || time.Since(began) > 20*time.Second {
				t.Errorf("%+v, after %v", out, time.Since(began))
			}
		})
	}
	out := runDowel(t, "", withTestServer(t, "watch", "--json", "--timeout", "500ms")...)
	if out.code != exit.Timeout || !strings.Contains(out.stderr, `"exit":124`) {
		t.Errorf("%+v", out)
	}
}
