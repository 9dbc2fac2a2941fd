package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// block is a fenced block of a page.
type block struct {
	page string // path relative to the module
	line int    // first line of the content
	kind string // go, sh, console …
	text string
}

// page reads a page. name is relative to the module.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages returns the README and all pages in docs, relative to the module.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel(root, path)
		all = append(all, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// blocks returns a page's fenced blocks of one kind.
func blocks(t *testing.T, name, kind string) (all []block) {
	t.Helper()
	open, in := false, block{}
	for i, line := range strings.Split(page(t, name), "\n") {
		fence, fenced := strings.CutPrefix(line, "```")
		switch {
		case fenced && open:
			if open = false; in.kind == kind {
				all = append(all, in)
			}
		case fenced:
			open, in = true, block{page: name, line: i + 2, kind: strings.TrimSpace(fence)}
		case open:
			in.text += line + "\n"
		}
	}
	if open {
		t.Errorf("%s:%d: the block is not closed", name, in.line-1)
	}
	return all
}

var (
	link         = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	code         = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
	droppedRunes = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// anchors returns the names by which a page's headings can be linked to.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := droppedRunes.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, name := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(page(t, name), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := name
			if file != "" {
				to = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
				continue
			}
			if anchor != "" && !anchors(page(t, to))[anchor] {
				t.Errorf("%s links to %s, but %s has no such heading", name, m[1], to)
			}
		}
	}
	if links < 5 {
		t.Errorf("only %d links were found", links)
	}
}
