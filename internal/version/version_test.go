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

// A title has the version, but not the word for a build without one.
func TestTitle(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{"devel": "dowel", "v1.2.3": "dowel v1.2.3", "devel-0123456789ab": "dowel devel-0123456789ab"} {
		if got := Title(number); got != want {
			t.Errorf("%s: %q, want %q", number, got, want)
		}
	}
}
