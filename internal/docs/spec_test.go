package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxOpenRequirements bounds the rows of docs/spec that are open. It only falls: a change that
// closes a row lowers it.
const maxOpenRequirements = 1

// requirements and recommendations are the numbers of rows in docs/spec. None may be lost.
const (
	requirements    = 276
	recommendations = 40 // in should.md
)

var (
	requirementRow = regexp.MustCompile(`^\| ([a-z]+\.\d\d) \| (server|client|both|host) \| [^|]+\. \|([^|]*)\|([^|]*)\|$`)
	namedFile      = regexp.MustCompile("`([a-z0-9/_]+\\.go)`")
)

// Every requirement of the specification has a file and a test that exist, or says why not.
func TestRequirementsHaveTests(t *testing.T) {
	t.Parallel()
	rows, open := map[string]string{}, 0
	for _, name := range specificationPages(t) {
		for i, line := range strings.Split(page(t, name), "\n") {
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| id |") {
				continue
			}
			row := requirementRow.FindStringSubmatch(line)
			if row == nil {
				t.Errorf("%s:%d: want | id | role | requirement. | file | tests |", name, i+1)
				continue
			}
			if at := rows[row[1]]; at != "" {
				t.Errorf("%s:%d: the id %s is already in %s: choose another one", name, i+1, row[1], at)
			}
			rows[row[1]] = name
			if checkRequirement(t, row[1], row[3], row[4]) {
				open++
			}
		}
	}
	recommended := 0
	for id := range rows {
		if strings.HasPrefix(id, "should.") {
			recommended++
		}
	}
	if n := len(rows) - recommended; n != requirements || recommended != recommendations {
		t.Errorf("docs/spec has %d requirements and %d recommendations, want %d and %d: none may be lost; change the constants if some were added",
			n, recommended, requirements, recommendations)
	}
	if open > maxOpenRequirements {
		t.Errorf("%d requirements are open, want at most %d: close one of them", open, maxOpenRequirements)
	}
}

// specificationPages returns the pages in docs/spec, relative to the module.
func specificationPages(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(os.DirFS(root), "docs/spec/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// checkRequirement checks the last two columns of a row and reports whether the row is open.
func checkRequirement(t *testing.T, id, files, tests string) (open bool) {
	t.Helper()
	foundFiles, foundTests := namedFile.FindAllStringSubmatch(files, -1), namedTest.FindAllStringSubmatch(tests, -1)
	for _, m := range foundFiles {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, m := range foundTests {
		if !hasTest(t, m[1], m[2]) {
			t.Errorf("%s: %s has no test %s", id, m[1], m[2])
		}
	}
	open = strings.Contains(tests, "open: ")
	if !open && !strings.Contains(tests, "does not bind: ") && (foundFiles == nil || foundTests == nil) {
		t.Errorf("%s: want a file and a test, or a reason after \"open: \" or \"does not bind: \"", id)
	}
	if strings.Count(files+tests, "`") != 2*(len(foundFiles)+len(foundTests)) && !open && !strings.Contains(tests, "does not bind: ") {
		t.Errorf("%s: a name in backquotes is neither a file nor a test", id)
	}
	return open
}
