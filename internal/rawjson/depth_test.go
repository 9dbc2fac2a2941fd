package rawjson

import "testing"

func TestDepth(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 0, `"[{"`: 0, `[]`: 1, `{"a":[1,{"b":2}]}`: 3, `[[],[[]],[]]`: 3, `{"[[[\\\"[[[":"]]\\"}`: 1,
	} {
		if got := Depth([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
