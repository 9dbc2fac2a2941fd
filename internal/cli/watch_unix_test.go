//go:build unix

package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// watch ends after --timeout, and warns of resources for which the server sends no updates.
func TestWatchInVain(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			polltest.UntilLongEnough(t, 2*time.Second, func(limit time.Duration) error {
				out := runDowel(t, "", withTestServer(t, "watch", "test://nope", "test://item/7", "--count", "1", "--timeout", limit.String(), "--revision", revision)...)
				ended := fmt.Sprintf("saw 0 of 1 changes: timed out: not done within %v", limit)
				if out.code != exit.Timeout || !strings.Contains(out.stderr, ended) || !strings.Contains(out.stderr, "test://nope") || strings.Contains(out.stderr, "test://item/7") {
					return fmt.Errorf("%+v", out)
				}
				return nil
			})
		})
	}
	out := runDowel(t, "", withTestServer(t, "watch", "--json", "--timeout", "500ms")...)
	if out.code != exit.Timeout || !strings.Contains(out.stderr, `"exit":124`) {
		t.Errorf("%+v", out)
	}
}
