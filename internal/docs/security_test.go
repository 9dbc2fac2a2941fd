package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest is a test that a page names, such as `gateway.TestToken`.
var namedTest = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)\\w+)`")

// Every test that docs/security.md names exists, and every promise names one.
func TestPromisesHaveTests(t *testing.T) {
	t.Parallel()
	n := 0
	for i, line := range strings.Split(page(t, "docs/security.md"), "\n") {
		found := namedTest.FindAllStringSubmatch(line, -1)
		isRow := strings.HasPrefix(line, "| ") && !strings.Contains(line, "| tests |")
		if isRow && found == nil && !strings.Contains(line, "a limit, not a promise") {
			t.Errorf("docs/security.md:%d: the row names no test", i+1)
		}
		for _, m := range found {
			n++
			if !hasTest(t, m[1], m[2]) {
				t.Errorf("docs/security.md:%d: %s has no test %s", i+1, m[1], m[2])
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d tests were found", n)
	}
}

// hasTest reports whether a package of this module has a test or fuzz test of a name.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
