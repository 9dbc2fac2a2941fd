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
	Glob       string `json:"glob,omitzero" doc:"Search only files whose path relative to path matches, such as src/**/*.go or *.{ts,tsx}. A glob without a slash matches names in all folders" maxLength:"1000"`
	Query      string `json:"query,omitzero" doc:"The text that a line must contain; without it, the result is the files that match glob" maxLength:"10000"`
	Regexp     bool   `json:"regexp,omitzero" doc:"query is a regular expression (RE2 syntax) that matches within a line"`
	IgnoreCase bool   `json:"ignoreCase,omitzero"`
	Context    int    `json:"context,omitzero" doc:"The number of lines to show before and after each match" minimum:"0" maximum:"20"`
	Limit      int    `json:"limit,omitzero" doc:"The maximal number of matches" default:"100" minimum:"1" maximum:"1000"`
	Ignored    bool   `json:"ignored,omitzero" doc:"Also search files that .gitignore files exclude"`
}

// Findings is the result of the tool search.
type Findings struct {
	Matches []Finding `json:"matches" doc:"Sorted by path"`
	Files   int       `json:"files" doc:"The number of files searched"`
	More    bool      `json:"more" doc:"Whether there are more matches than returned"`
	Note    string    `json:"note,omitzero" doc:"What was omitted"`
}

// Finding is a matching line or, without a query, a file.
type Finding struct {
	Path   string   `json:"path"`
	Line   int      `json:"line,omitzero" doc:"The number of the line, from 1"`
	Text   string   `json:"text,omitzero" doc:"The line, shortened if it is long"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// errStop ends a search whose result is full.
var errStop = errors.New("the result is full")

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
	find func(line string) int // the index of the match in a line, or -1; nil without a query
	room int                   // the number of bytes left for matches

	base   string // the folder to which the paths for the glob are relative
	buf    []byte // holds the current file; reused for the next one
	out    Findings
	seen   int      // the number of files seen, including files that the glob excludes
	binary int      // the number of binary files skipped
	large  []string // files skipped because of their size
	unread int      // the number of files and folders that could not be read
}

func (r *searcher) applyDefaults() error {
	if r.Glob == "" && r.Query == "" {
		return errors.New("want a glob to find files, a query to find lines, or both")
	}
	if r.Glob != "" {
		if filepath.IsAbs(r.Glob) {
			return fmt.Errorf("the glob %s is absolute, but globs match paths relative to the searched folder: give the folder as path", r.Glob)
		}
		g, ok := newGlob(r.Glob)
		if !ok {
			return fmt.Errorf("%q is not a valid glob: * matches within a name, ** any folders, ? one character, [a-z] one of several, {a,b} alternatives", r.Glob)
		}
		r.glob = &g
	}
	if r.Query == "" {
		return nil
	}
	if strings.Contains(r.Query, "\n") {
		return errors.New("query contains a line end, but each line is searched separately: search for one of the lines, with context")
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
		return fmt.Errorf("%w (RE2 syntax, which has no backreferences and no lookaround); to search for the text itself, omit regexp", err)
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

// reportEvery is the number of files between two progress notifications.
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

// fromBase returns the path of a place relative to r.base, with slashes.
func (r *searcher) fromBase(p place) string {
	if r.base == "." {
		return p.slashPath()
	}
	return filepath.ToSlash(strings.TrimPrefix(p.name, r.base+string(filepath.Separator)))
}

// addFinding adds a match. It returns errStop if the result is full.
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

// searchFile searches a file's lines. It counts and skips a file that cannot be read.
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
