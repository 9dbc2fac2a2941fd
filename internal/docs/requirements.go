// Package docs reads the pages in docs/spec. Its tests compare the README and the pages in docs
// with the code: their Go compiles, their command lines run and print the shown output, and their
// links lead to existing pages and headings.
package docs

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// A Requirement is one row of the pages in docs/spec.
type Requirement struct {
	ID    string
	At    string // page and line, for messages
	Files string // the columns as they are written
	Tests string
}

// A TestName is a test that a page names as folder and function, such as gateway.TestToken.
type TestName struct {
	Folder   string // relative to the module
	Function string
}

func (n TestName) String() string { return n.Folder + "." + n.Function }

var (
	requirementRow = regexp.MustCompile(`^\| ([a-z]+\.\d\d) \| (server|client|both|host) \| [^|]+\. \|([^|]*)\|([^|]*)\|$`)
	namedTest      = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)\\w+)`")
)

// FindTests returns the tests that a text names in backquotes.
func FindTests(text string) (found []TestName) {
	for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
		found = append(found, TestName{m[1], m[2]})
	}
	return found
}

// ReadRequirements reads all rows. module is the root of the module. A row that has another form is
// an error.
func ReadRequirements(module fs.FS) (rows []Requirement, err error) {
	pages, err := fs.Glob(module, "docs/spec/*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range pages {
		text, err := fs.ReadFile(module, name)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| id |") {
				continue
			}
			row := requirementRow.FindStringSubmatch(line)
			if row == nil {
				return nil, fmt.Errorf("%s:%d: want | id | role | requirement. | file | tests |", name, i+1)
			}
			rows = append(rows, Requirement{row[1], fmt.Sprintf("%s:%d", name, i+1), row[3], row[4]})
		}
	}
	return rows, nil
}
