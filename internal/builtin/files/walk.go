package files

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxEntries bounds the entries read from one folder.
const maxEntries = 100_000

// maxDepth bounds the depth of a walk.
const maxDepth = 100

// child is an entry of a folder.
type child struct {
	place
	mode    fs.FileMode // only the type bits
	ignored bool        // by a .gitignore file, or as git's own folder
}

// listChildren returns the entries of a folder, at most maxEntries, sorted by name. It marks the
// entries that rules exclude; rules may be nil.
func (p place) listChildren(rules *ignores) ([]child, error) {
	f, err := p.openFolder()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries)
	if len(entries) == 0 && err != nil && !isEnd(err) {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	all := make([]child, len(entries))
	for i, e := range entries {
		c := child{place: p.child(e.Name()), mode: e.Type()}
		c.ignored = e.Name() == gitFolder || rules.isIgnored(c.slashPath(), c.mode.IsDir())
		all[i] = c
	}
	return all, nil
}

// walk visits all files below a folder, sorted by name in each folder. It does not follow links.
type walk struct {
	context.Context
	ignored bool // also visit entries that .gitignore files exclude; .git is never visited
	visit   func(child) error
	unread  int // folders that could not be read
}

// walkFolder walks a folder. It ends with the first error of visit, or with the context.
func (w *walk) walkFolder(p place, above *ignores, depth int) error {
	if err := w.Err(); err != nil {
		return err
	}
	var rules *ignores
	if !w.ignored {
		rules = above.addFolder(p)
	}
	all, err := p.listChildren(rules)
	if err != nil || depth > maxDepth {
		w.unread++
		return nil
	}
	for _, c := range all {
		switch {
		case c.ignored:
		case c.mode.IsDir():
			err = w.walkFolder(c.place, rules, depth+1)
		case c.mode.IsRegular():
			err = w.visit(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clipLine shortens a line to 400 bytes for a result. The byte at around stays in it.
func clipLine(line string, around int) string {
	const most, before = 400, 100
	if len(line) <= most {
		return replaceInvalid(line)
	}
	from := 0
	if around > most/2 {
		from = around - before
	}
	for from > 0 && from < len(line) && !utf8.RuneStart(line[from]) {
		from++
	}
	part := line[from:]
	text := ""
	if from > 0 {
		text = "…"
	}
	if len(part) > most {
		return text + replaceInvalid(part[:wholeCharacters([]byte(part[:most]))]) + "…"
	}
	return text + replaceInvalid(part)
}
