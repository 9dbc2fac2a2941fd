package version

import "testing"

func TestWords(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"devel": "unreleased, built from source", "devel-0123456789ab": "devel-0123456789ab", "v1.2.3": "v1.2.3"} {
		if got := (Build{Version: version}).Words(); got != want {
			t.Errorf("%s: %s", version, got)
		}
	}
}
