package up

import "testing"

func TestCutLines(t *testing.T) {
	lines := []string{"1", "2", "3", "4", "5"}
	if got := cutLines(lines, 5); len(got) != 5 {
		t.Error(got)
	}
	if got := cutLines(lines, 3); len(got) != 3 || got[2] != "… 3 more lines: dowel status" {
		t.Error(got)
	}
}
