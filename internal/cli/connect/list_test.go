package connect

import (
	"strings"
	"testing"
)

// The reason for a missing server is a sentence for every status.
func TestMissingServerError(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"failed", "needs authorization", "needs trust", "starting"} {
		got := missingServer{"github", status, "the reason"}.Error()
		if got != status+": the reason; dowel doctor github says more" || strings.Contains(got, "is "+status) {
			t.Error(got)
		}
	}
	if got := (missingServer{"github", "needs login", "https://a.example/mcp needs a login"}).Error(); got != "https://a.example/mcp needs a login; log in: dowel login github" {
		t.Error(got)
	}
}
