package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t `)

// attack/README.md has a row for each number from 1 on. Each row names tests that exist, or says
// that the attack is open. Each test of the folder is named.
func TestAttacksHaveTests(t *testing.T) {
	t.Parallel()
	text := page(t, "attack/README.md")
	last := 0
	for line := range strings.SplitSeq(text, "\n") {
		columns := strings.Split(line, "|")
		if len(columns) != 5 || strings.Contains(line, "| no. |") || strings.HasPrefix(line, "|-") {
			continue
		}
		for number := range strings.SplitSeq(columns[1], ",") {
			n, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil {
				t.Errorf("%q is no number: %s", number, line)
			}
			last = max(last, n)
		}
		found := FindTests(columns[3])
		if found == nil && !strings.Contains(columns[3], "open:") {
			t.Errorf("the row names no test: %s", line)
		}
		for _, test := range found {
			if !hasTest(t, test) {
				t.Errorf("%s has no test %s", test.Folder, test.Function)
			}
		}
	}
	checkNumbers(t, text, last)
	files, err := filepath.Glob(filepath.Join(root, "attack", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunction.FindAllStringSubmatch(string(source), -1) {
			if !strings.Contains(text, "`attack."+m[1]+"`") {
				t.Errorf("attack/README.md does not name %s", m[1])
			}
		}
	}
}

// checkNumbers fails the test unless each number up to last is in a first column.
func checkNumbers(t *testing.T, text string, last int) {
	t.Helper()
	const tried = 71 // on the program before it was hardened
	if last < tried {
		t.Errorf("the last number is %d, want at least %d", last, tried)
	}
	for n := range last {
		number := strconv.Itoa(n + 1)
		if !regexp.MustCompile(`(?m)^\|([ 0-9,]* |)` + number + `[, ]`).MatchString(text) {
			t.Errorf("no row has the number %s", number)
		}
	}
}
