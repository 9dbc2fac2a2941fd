package main

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/dowel-mcp/dowel/internal/docs"
)

// A mutant is one change of the source that breaks one requirement of the specification.
type mutant struct {
	row   string // the id of the requirement, as in docs/spec
	file  string // the changed file, relative to the module
	old   string // the text that the change replaces; it occurs once in file
	new   string
	tests []docs.TestName // the tests that must fail; empty means the tests of the row
	at    string          // where the change stands, for messages
}

var mutantHead = regexp.MustCompile(`^## ([a-z]+\.\d\d) ([a-z0-9/_]+\.go)$`)

// readMutants reads every *.txt file of folder. See parseMutants for the format.
func readMutants(folder fs.FS) ([]mutant, error) {
	names, err := fs.Glob(folder, "*.txt")
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		found, err := parseMutants(name, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// parseMutants reads a list of mutants. Each begins with a line "## ROW FILE". A line "tests: …"
// may follow. The rest is a hunk without line numbers: the first character of a line is a space if
// the line stays, a minus if it goes and a plus if it is new. Lines that begin with "# ", and empty
// lines, do not count.
func parseMutants(name, text string) ([]mutant, error) {
	var all []mutant
	line := 0
	for l := range strings.Lines(text) {
		line++
		l = strings.TrimSuffix(l, "\n")
		at := fmt.Sprintf("%s:%d", name, line)
		if head := mutantHead.FindStringSubmatch(l); head != nil {
			all = append(all, mutant{row: head[1], file: head[2], at: at})
			continue
		}
		if l == "" || strings.HasPrefix(l, "# ") {
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%s: want a line \"## ROW FILE\" first, got %q", at, l)
		}
		if err := all[len(all)-1].addLine(l); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	for _, m := range all {
		if m.old == "" || m.old == m.new {
			return nil, fmt.Errorf("%s: the change of %s changes nothing", m.at, m.row)
		}
	}
	return all, nil
}

// addLine adds a line of the list that is neither a head nor a comment.
func (m *mutant) addLine(l string) error {
	if list, ok := strings.CutPrefix(l, "tests: "); ok {
		if m.tests = docs.FindTests(list); m.tests == nil {
			return fmt.Errorf("want tests in backquotes, such as `server.TestListen`, got %q", list)
		}
		return nil
	}
	content := l[1:] + "\n"
	switch l[0] {
	case ' ':
		m.old += content
		m.new += content
	case '-':
		m.old += content
	case '+':
		m.new += content
	default:
		return fmt.Errorf("want a line that begins with a space, - or +, got %q", l)
	}
	return nil
}

// apply returns the text of the file with the change.
func (m mutant) apply(text string) (string, error) {
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("%s: the text that the change of %s replaces occurs %d times in %s, want once: if the code has changed, change the list too", m.at, m.row, n, m.file)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}
