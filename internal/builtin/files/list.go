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
	Depth int    `json:"depth,omitzero" doc:"How deep to look: 1 is the folder itself" default:"1" minimum:"1" maximum:"20"`
	Limit int    `json:"limit,omitzero" doc:"How many entries to return, those that are less deep first" default:"500" minimum:"1" maximum:"5000"`
}

// Listing is what the tool list returns.
type Listing struct {
	Entries []Entry `json:"entries" doc:"Sorted by path"`
	Note    string  `json:"note,omitzero" doc:"What was left out"`
}

// Entry is a file or folder of a listing.
type Entry struct {
	Path    string `json:"path"`
	Kind    string `json:"kind" doc:"file, folder, link, pipe, socket, device or other"`
	Size    *int64 `json:"size,omitempty" doc:"Of a file, in bytes"`
	Target  string `json:"target,omitzero" doc:"Of a link: where it leads, which may be nowhere"`
	Ignored bool   `json:"ignored,omitzero" doc:"Excluded by a .gitignore file, or git's own folder: list does not look into such folders by depth, nor does search"`
}

// level is a folder whose entries are to be listed.
type level struct {
	place
	rules *ignores
}

func (s *Server) list(ctx context.Context, in listIn) (*mcp.CallToolResult, error) {
	starts, err := s.starts(in.Path)
	if err != nil {
		return nil, err
	}
	l := lister{Server: s, limit: in.Limit}
	for _, p := range starts {
		l.next = append(l.next, level{p, ignoresAt(p)})
	}
	for depth := 1; depth <= in.Depth && len(l.next) > 0 && !l.full; depth++ {
		if err := l.level(ctx, depth == 1); err != nil {
			return nil, err
		}
	}
	return l.answer(len(l.next) > 0)
}

// starts returns where a tool begins: at a folder, or at each root.
func (s *Server) starts(path string) ([]place, error) {
	if path != "" {
		p, err := s.roots.locate(path)
		return []place{p}, err
	}
	var all []place
	for _, r := range s.roots {
		all = append(all, place{r, "."})
	}
	return all, nil
}

// lister goes through folders level by level, so that a bound leaves out what is deepest.
type lister struct {
	*Server
	limit   int
	next    []level
	entries []listed
	full    bool
	unread  []string
}

type listed struct {
	Entry
	order string // the path with separators that sort before everything else
}

// level lists the folders that are next. Those that were asked for must be readable.
func (l *lister) level(ctx context.Context, asked bool) error {
	folders := l.next
	l.next = nil
	for _, folder := range folders {
		if err := ctx.Err(); err != nil {
			return err
		}
		all, err := folder.children(folder.rules)
		if err != nil && asked {
			return l.unlisted(folder.place, err)
		}
		if err != nil {
			l.unread = append(l.unread, l.roots.show(folder.place))
			continue
		}
		for _, c := range all {
			if len(l.entries) == l.limit {
				l.full = true
				return nil
			}
			l.add(c, folder.rules)
		}
	}
	return nil
}

// unlisted explains why a folder cannot be listed.
func (s *Server) unlisted(p place, err error) error {
	if info, e := p.root.Stat(p.name); e == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder but a %s: use info or read", s.roots.show(p), kindOf(info.Mode()))
	}
	return s.explain(p, err)
}

func (l *lister) add(c child, rules *ignores) {
	e := Entry{Path: l.roots.show(c.place), Kind: kindOf(c.mode), Ignored: c.ignored}
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
			l.next = append(l.next, level{c.place, rules.in(c.place)})
		}
	}
	l.entries = append(l.entries, listed{e, strings.ReplaceAll(filepath.ToSlash(c.path()), "/", "\x00")})
}

func (l *lister) answer(deeper bool) (*mcp.CallToolResult, error) {
	slices.SortFunc(l.entries, func(a, b listed) int { return strings.Compare(a.order, b.order) })
	out := Listing{Entries: []Entry{}}
	var b strings.Builder
	for _, e := range l.entries {
		out.Entries = append(out.Entries, e.Entry)
		b.WriteString(e.line() + "\n")
	}
	out.Note = l.note(deeper)
	if out.Note != "" {
		b.WriteString("[" + out.Note + "]")
	}
	return both(strings.TrimSuffix(b.String(), "\n"), out)
}

func (l *lister) note(deeper bool) string {
	var notes []string
	switch {
	case len(l.entries) == 0:
		notes = append(notes, "the folder is empty")
	case l.full:
		notes = append(notes, fmt.Sprintf("there are more than %d entries: list a folder in it, or search by a glob", l.limit))
	case deeper && len(l.entries) > 0:
		notes = append(notes, "folders are not shown deeper than asked for")
	}
	if len(l.unread) > 0 {
		notes = append(notes, "not readable: "+some(l.unread, 5))
	}
	return strings.Join(notes, "; ")
}

// line shows an entry to a model: a folder by a slash at its end.
func (e *Entry) line() string {
	text := oneLine(e.Path)
	switch {
	case e.Kind == kindFolder:
		text += "/"
	case e.Kind == kindLink:
		text += " -> " + oneLine(e.Target)
	case e.Size != nil:
		text += fmt.Sprintf("  %d bytes", *e.Size) // exactly: who reads the text needs no more than it
	default:
		text += "  (" + e.Kind + ")"
	}
	if e.Ignored {
		text += "  (ignored)"
	}
	return text
}

// oneLine keeps a name with a line end in it from looking like two.
func oneLine(name string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(name)
}
