package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxOpenRequirements bounds the rows of docs/spec that are open. It only falls: a change that
// closes a row lowers it.
const maxOpenRequirements = 0

// requirements and recommendations are the numbers of rows in docs/spec. None may be lost.
const (
	requirements    = 439
	recommendations = 40 // in should.md
)

var namedFile = regexp.MustCompile("`([a-z0-9/_]+\\.go)`")

// Every requirement of the specification has a file and a test that exist, or says why not.
func TestRequirementsHaveTests(t *testing.T) {
	t.Parallel()
	all, err := ReadRequirements(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	rows, open := map[string]string{}, 0
	for _, row := range all {
		if at := rows[row.ID]; at != "" {
			t.Errorf("%s: the id %s is already at %s: choose another one", row.At, row.ID, at)
		}
		rows[row.ID] = row.At
		if checkRequirement(t, row) {
			open++
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

// checkRequirement checks the last two columns of a row and reports whether the row is open.
func checkRequirement(t *testing.T, row Requirement) (open bool) {
	t.Helper()
	id, files, tests := row.ID, row.Files, row.Tests
	foundFiles, foundTests := namedFile.FindAllStringSubmatch(files, -1), FindTests(tests)
	for _, m := range foundFiles {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, test := range foundTests {
		if !hasTest(t, test) {
			t.Errorf("%s: %s has no test %s", id, test.Folder, test.Function)
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
