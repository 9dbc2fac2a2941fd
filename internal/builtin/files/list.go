package files

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

type listIn struct {
	Path  string `json:"path,omitzero" doc:"The folder; without it, every allowed folder"`
	Depth int    `json:"depth,omitzero" doc:"The number of levels to list; 1 lists the folder only" default:"1" minimum:"1" maximum:"20"`
	Limit int    `json:"limit,omitzero" doc:"The maximal number of entries; the deepest ones are omitted first" default:"500" minimum:"1" maximum:"5000"`
}

// Listing is the result of the tool list.
type Listing struct {
	Entries []Entry `json:"entries" doc:"Sorted by path"`
	Note    string  `json:"note,omitzero" doc:"What was omitted"`
}

// Entry is a file or folder of a listing.
type Entry struct {
	Path    string `json:"path"`
	Kind    string `json:"kind" doc:"file, folder, link, pipe, socket, device or other"`
	Size    *int64 `json:"size,omitempty" doc:"The size of a file in bytes"`
	Target  string `json:"target,omitzero" doc:"The target of a link; it need not exist"`
	Ignored bool   `json:"ignored,omitzero" doc:"Excluded by a .gitignore file, or a folder .git. The tools list and search do not descend into such folders"`
}

// level is a folder to be listed.
type level struct {
	place
	rules *ignores // the .gitignore rules in it
}

func (s *Server) listFolder(ctx context.Context, in listIn) (*mcp.CallToolResult, error) {
	starts, err := s.startPlaces(in.Path)
	if err != nil {
		return nil, err
	}
	l := lister{Server: s, limit: in.Limit}
	for _, p := range starts {
		l.next = append(l.next, level{p, ignoresAt(p)})
	}
	for depth := 1; depth <= in.Depth && len(l.next) > 0 && !l.full; depth++ {
		if err := l.listLevel(ctx, depth == 1); err != nil {
			return nil, err
		}
	}
	return l.buildResult(len(l.next) > 0)
}

// startPlaces returns the place of the path or, if it is empty, the places of all roots.
func (s *Server) startPlaces(path string) ([]place, error) {
	if path != "" {
		p, err := s.roots.parsePath(path)
		return []place{p}, err
	}
	var all []place
	for _, r := range s.roots {
		all = append(all, place{r, "."})
	}
	return all, nil
}

// lister lists folders level by level, so that a limit leaves out the deepest ones.
type lister struct {
	*Server
	limit   int
	next    []level // the folders of the next level
	entries []listed
	full    bool     // the limit has cut the list
	unread  []string // folders that could not be read
}

type listed struct {
	Entry
	order string // the path with separators that sort before everything else
}

// listLevel lists the folders in l.next and replaces them by the folders found. If mustRead is
// true, a folder that cannot be read is an error.
func (l *lister) listLevel(ctx context.Context, mustRead bool) error {
	folders := l.next
	l.next = nil
	for _, folder := range folders {
		if err := ctx.Err(); err != nil {
			return err
		}
		all, err := folder.listChildren(folder.rules)
		if err != nil && mustRead {
			return l.listError(folder.place, err)
		}
		if err != nil {
			l.unread = append(l.unread, l.roots.displayPath(folder.place))
			continue
		}
		for _, c := range all {
			if len(l.entries) == l.limit {
				l.full = true
				return nil
			}
			l.addEntry(c, folder.rules)
		}
	}
	return nil
}

// listError explains why a folder cannot be listed.
func (s *Server) listError(p place, err error) error {
	if info, e := p.root.Stat(p.name); e == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder but a %s: use info or read", s.roots.displayPath(p), kindOf(info.Mode()))
	}
	return s.explainError(p, err)
}

func (l *lister) addEntry(c child, rules *ignores) {
	e := Entry{Path: l.roots.displayPath(c.place), Kind: kindOf(c.mode), Ignored: c.ignored}
	switch e.Kind {
	case kindFile:
		if info, err := c.root.Lstat(c.name); err == nil {
			e.Size = new(info.Size())
		}
	case kindLink:
		target, _ := c.root.Readlink(c.name)
		e.Target = shownName(target)
	case kindFolder:
		if !c.ignored {
			l.next = append(l.next, level{c.place, rules.addFolder(c.place)})
		}
	}
	l.entries = append(l.entries, listed{e, strings.ReplaceAll(filepath.ToSlash(c.absolutePath()), "/", "\x00")})
}

func (l *lister) buildResult(deeper bool) (*mcp.CallToolResult, error) {
	slices.SortFunc(l.entries, func(a, b listed) int { return strings.Compare(a.order, b.order) })
	out := Listing{Entries: []Entry{}}
	var b strings.Builder
	for _, e := range l.entries {
		out.Entries = append(out.Entries, e.Entry)
		b.WriteString(e.formatLine() + "\n")
	}
	out.Note = l.omissionNote(deeper)
	if out.Note != "" {
		b.WriteString("[" + out.Note + "]")
	}
	return textAndStructured(strings.TrimSuffix(b.String(), "\n"), out)
}

func (l *lister) omissionNote(deeper bool) string {
	var notes []string
	switch {
	case len(l.entries) == 0:
		notes = append(notes, "the folder is empty")
	case l.full:
		notes = append(notes, fmt.Sprintf("there are more than %d entries: list a subfolder, or use search with a glob", l.limit))
	case deeper && len(l.entries) > 0:
		notes = append(notes, "the subfolders may contain more: raise depth to list them")
	}
	if len(l.unread) > 0 {
		notes = append(notes, "not readable: "+listNames(l.unread, 5))
	}
	return strings.Join(notes, "; ")
}

// formatLine returns an entry as a line of text. A folder ends with a slash.
func (e *Entry) formatLine() string {
	text := oneLine(e.Path)
	switch {
	case e.Kind == kindFolder:
		text += "/"
	case e.Kind == kindLink:
		text += " -> " + oneLine(e.Target)
	case e.Size != nil:
		text += fmt.Sprintf("  %d bytes", *e.Size) // exact, because a model may read only the text
	default:
		text += "  (" + e.Kind + ")"
	}
	if e.Ignored {
		text += "  (ignored)"
	}
	return text
}

// oneLine escapes line ends and tabs in a name.
func oneLine(name string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(name)
}
