//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// watch ends after --timeout, and warns of resources for which the server sends no updates.
func TestWatchInVain(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			out := runDowel(t, "", withTestServer(t, "watch", "test://nope", "test://item/7", "--count", "1", "--timeout", "10s", "--revision", revision)...)
			if out.code != exit.Timeout || !strings.Contains(out.stderr, "saw 0 of 1 changes: timed out: not done within 10s") || !strings.Contains(out.stderr, "test://nope") {
				t.Errorf("%+v", out)
			}
			if strings.Contains(out.stderr, "test://item/7") {
				t.Errorf("%+v", out)
			}
		})
	}
	out := runDowel(t, "", withTestServer(t, "watch", "--json", "--timeout", "500ms")...)
	if out.code != exit.Timeout || !strings.Contains(out.stderr, `"exit":124`) {
		t.Errorf("%+v", out)
	}
}
