package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

type searchIn struct {
	Path       string `json:"path,omitzero" doc:"The folder, or file, to search; without it, every allowed folder"`
	Glob       string `json:"glob,omitzero" doc:"Only files whose path from there matches, such as src/**/*.go or *.{ts,tsx}; without a slash it is about names in all folders" maxLength:"1000"`
	Query      string `json:"query,omitzero" doc:"What a line must contain; without it, files are found by glob alone" maxLength:"10000"`
	Regexp     bool   `json:"regexp,omitzero" doc:"query is a regular expression (RE2 syntax), for one line"`
	IgnoreCase bool   `json:"ignoreCase,omitzero"`
	Context    int    `json:"context,omitzero" doc:"How many lines to show before and after each match" minimum:"0" maximum:"20"`
	Limit      int    `json:"limit,omitzero" doc:"How many matches to return" default:"100" minimum:"1" maximum:"1000"`
	Ignored    bool   `json:"ignored,omitzero" doc:"Search what .gitignore files exclude as well"`
}

// Findings is the result of the tool search.
type Findings struct {
	Matches []Finding `json:"matches" doc:"Sorted by path"`
	Files   int       `json:"files" doc:"How many files were searched"`
	More    bool      `json:"more" doc:"Whether the search ended early because there are more matches"`
	Note    string    `json:"note,omitzero" doc:"What was left out"`
}

// Finding is a matching line or, without a query, a file.
type Finding struct {
	Path   string   `json:"path"`
	Line   int      `json:"line,omitzero" doc:"Its number"`
	Text   string   `json:"text,omitzero" doc:"The line, shortened if it is long"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// errStop ends a search that has enough.
var errStop = errors.New("enough was found")

func (s *Server) searchFiles(ctx context.Context, in searchIn) (*mcp.CallToolResult, error) {
	r := &searcher{Server: s, searchIn: in, ctx: ctx, room: MaxText}
	if err := r.applyDefaults(); err != nil {
		return nil, err
	}
	starts, err := s.startPlaces(in.Path)
	if err != nil {
		return nil, err
	}
	for _, p := range starts {
		if err := r.searchPlace(p); errors.Is(err, errStop) {
			r.out.More = true
			break
		} else if err != nil {
			return nil, err
		}
	}
	return r.buildResult()
}

// searcher is one search.
type searcher struct {
	*Server
	searchIn
	ctx  context.Context
	glob *glob
	find func(line string) int // where a line matches, or -1; nil without a query
	room int                   // bytes that further matches may take

	base   string // where the globs' paths begin
	buf    []byte // of the file that is searched
	out    Findings
	seen   int // files, including those that the glob excludes
	binary int
	large  []string
	unread int
}

func (r *searcher) applyDefaults() error {
	if r.Glob == "" && r.Query == "" {
		return errors.New("give a glob, to find files, or a query, to find lines, or both")
	}
	if r.Glob != "" {
		if filepath.IsAbs(r.Glob) {
			return fmt.Errorf("the glob %s is absolute, but it is about paths from the folder that is searched: give that as path", r.Glob)
		}
		g, ok := newGlob(r.Glob)
		if !ok {
			return fmt.Errorf("%q is no glob: * is for names, ** for folders, ? for a character, [a-z] for one of several, {a,b} for alternatives", r.Glob)
		}
		r.glob = &g
	}
	if r.Query == "" {
		return nil
	}
	if strings.Contains(r.Query, "\n") {
		return errors.New("query has a line end, and lines are searched one by one: search for one of its lines, with context")
	}
	return r.compileQuery()
}

func (r *searcher) compileQuery() error {
	if !r.Regexp && !r.IgnoreCase {
		r.find = func(line string) int { return strings.Index(line, r.Query) }
		return nil
	}
	pattern := r.Query
	if !r.Regexp {
		pattern = regexp.QuoteMeta(pattern)
	}
	if r.IgnoreCase {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("%w (RE2 syntax: there are no backreferences and no lookaround); without regexp the query is taken literally", err)
	}
	r.find = func(line string) int {
		if at := re.FindStringIndex(line); at != nil {
			return at[0]
		}
		return -1
	}
	return nil
}

// searchPlace searches a folder or a file.
func (r *searcher) searchPlace(p place) error {
	info, err := p.root.Stat(p.name)
	if err != nil {
		return r.explainError(p, err)
	}
	if !info.IsDir() {
		if err := r.checkRegular(p, info); err != nil {
			return err
		}
		r.base = filepath.Dir(p.name)
		return r.visitChild(child{place: p, mode: info.Mode().Type()})
	}
	r.base = p.name
	var above *ignores
	if !r.Ignored && !p.isRoot() {
		above = ignoresAt(p.parent())
	}
	w := walk{Context: r.ctx, ignored: r.Ignored, visit: r.visitChild}
	err = w.walkFolder(p, above, 1)
	r.unread += w.unread
	return err
}

// reportEvery is how many files are between two reports of progress.
const reportEvery = 200

func (r *searcher) visitChild(c child) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if r.seen++; r.seen%reportEvery == 0 {
		server.Progress(r.ctx, float64(r.seen), 0, fmt.Sprintf("%d files seen, %d matches", r.seen, len(r.out.Matches)))
	}
	if r.glob != nil && !r.glob.matchName(r.fromBase(c.place)) {
		return nil
	}
	if r.find != nil {
		return r.searchFile(c.place)
	}
	r.out.Files++
	return r.addFinding(Finding{Path: r.roots.displayPath(c.place)})
}

// fromBase is a place's path from where the search began.
func (r *searcher) fromBase(p place) string {
	if r.base == "." {
		return p.slashPath()
	}
	return filepath.ToSlash(strings.TrimPrefix(p.name, r.base+string(filepath.Separator)))
}

// addFinding takes a match, or ends the search.
func (r *searcher) addFinding(f Finding) error {
	size := len(f.Path) + len(f.Text)
	for _, lines := range [][]string{f.Before, f.After} {
		for _, line := range lines {
			size += len(line)
		}
	}
	if len(r.out.Matches) == r.Limit || size > r.room {
		return errStop
	}
	r.room -= size
	r.out.Matches = append(r.out.Matches, f)
	return nil
}

// searchFile searches a file's lines. One that cannot be read is counted and passed over.
func (r *searcher) searchFile(p place) error {
	content, err := r.contentOf(p)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.unread++
		}
		return nil
	}
	if content == nil {
		return nil
	}
	r.out.Files++
	return r.searchLines(r.roots.displayPath(p), string(content))
}
