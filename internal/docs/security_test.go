package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every test that docs/security.md names exists, and every promise names one.
func TestPromisesHaveTests(t *testing.T) {
	t.Parallel()
	n := 0
	for i, line := range strings.Split(page(t, "docs/security.md"), "\n") {
		found := FindTests(line)
		isRow := strings.HasPrefix(line, "| ") && !strings.Contains(line, "| tests |")
		if isRow && found == nil && !strings.Contains(line, "a limit, not a promise") {
			t.Errorf("docs/security.md:%d: the row names no test", i+1)
		}
		for _, test := range found {
			n++
			if !hasTest(t, test) {
				t.Errorf("docs/security.md:%d: %s has no test %s", i+1, test.Folder, test.Function)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d tests were found", n)
	}
}

// hasTest reports whether this module has a test or fuzz test.
func hasTest(t *testing.T, test TestName) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(test.Folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+test.Function+"(") {
			return true
		}
	}
	return false
}
