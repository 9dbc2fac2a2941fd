// Package draft edits the configuration files of a running dowel from afar, such as from a browser.
//
// [Desk.Open] returns the text of a file with a placeholder for each secret, and an id. [Desk.Save]
// takes the id with the changed text or with single edits, and writes the file only if it still is
// as it was opened. If another program has changed the file, Save writes nothing and returns both
// changes and a new draft with the merged text. [Desk.Check] does all of that without writing.
package draft

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/linediff"
)

const (
	maxText   = 256 << 10 // bytes of a file
	maxDrafts = 64        // the oldest one is forgotten
)

// ErrNoDraft is wrapped by the error for the id of a draft that is unknown or was forgotten.
var ErrNoDraft = errors.New("this draft is no longer open: open the file again")

// ErrNoFile is wrapped by the error for a file that is not part of the configuration.
var ErrNoFile = errors.New("dowel reads no such file")

// Desk holds the open drafts of one configuration. It is safe for concurrent use.
type Desk struct {
	// Files returns the files that may be edited. Set it before the first use.
	Files func() []config.File

	mu     sync.Mutex
	drafts map[string]*draft
	order  []string // ids, the oldest first
}

// draft is an open file.
type draft struct {
	file    config.File
	base    []byte // the file's text; nil if it does not exist
	secrets secrets
}

// Opened is an open draft.
type Opened struct {
	Draft string `json:"draft"` // the id
	Path  string `json:"path"`
	Text  string `json:"text"` // with placeholders for secrets
	// Hash identifies the text of the file, as [config.File] has it.
	Hash  string `json:"hash"`
	IsNew bool   `json:"isNew,omitzero"` // the file does not exist yet
}

// Open opens a file of the configuration.
func (d *Desk) Open(path string) (Opened, error) {
	file, err := d.findFile(path)
	if err != nil {
		return Opened{}, err
	}
	text, err := readText(file)
	if err != nil {
		return Opened{}, err
	}
	return d.openText(&draft{file: file, base: text})
}

// openText keeps the draft of a file as it is, and shows it.
func (d *Desk) openText(dr *draft) (Opened, error) {
	if found := placeholder().Find(dr.base); found != nil && len(dr.secrets) == 0 {
		return Opened{}, fmt.Errorf("%s has the text %s, which would stand for a secret here: change it in an editor", dr.file.Path, found)
	}
	shown := dr.secrets.hide(dr.file.Path, dr.base)
	if err := checkHidden(dr.file.Path, shown); err != nil {
		return Opened{}, err
	}
	return d.keep(dr, shown), nil
}

// keep keeps a draft, which is shown with a text.
func (d *Desk) keep(dr *draft, shown string) Opened {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.drafts == nil {
		d.drafts = map[string]*draft{}
	}
	if len(d.order) == maxDrafts {
		delete(d.drafts, d.order[0])
		d.order = d.order[1:]
	}
	id := rand.Text()
	d.drafts[id], d.order = dr, append(d.order, id)
	return Opened{Draft: id, Path: dr.file.Path, Text: shown, Hash: config.HashText(dr.base), IsNew: dr.base == nil}
}

func (d *Desk) findFile(path string) (config.File, error) {
	files := d.Files()
	i := slices.IndexFunc(files, func(f config.File) bool { return f.Path == path })
	if i < 0 {
		return config.File{}, fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	return files[i], nil
}

// readText returns the text of a file, or nil if it does not exist. A project's file must be in the
// project: a link could lead to any file of the user.
func readText(file config.File) ([]byte, error) {
	path := file.Path
	if target, err := filepath.EvalSymlinks(path); err == nil && file.Scope == config.Project {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil || filepath.Dir(target) != folder {
			return nil, fmt.Errorf("%s leads out of its folder: change it in an editor", path)
		}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > maxText:
		return nil, fmt.Errorf("%s has %d bytes: dowel edits files of at most %d bytes", path, info.Size(), maxText)
	}
	text, err := os.ReadFile(path)
	if err == nil && !utf8.Valid(text) {
		return nil, fmt.Errorf("%s is not in UTF-8: change it in an editor", path)
	}
	return text, err
}

// Change is a change of a draft: a whole text, or single edits of the text that was opened.
type Change struct {
	Draft string  `json:"draft"`
	Text  *string `json:"text,omitempty"`
	Edits []Edit  `json:"edits,omitempty"`
	// Overwrite is the hash of the file on disk that the user has seen in a [Conflict]. The change
	// replaces it, and so undoes the change of another program.
	Overwrite string `json:"overwrite,omitzero"`
}

// Edit sets or removes one value. It changes the smallest span of the file.
type Edit struct {
	Path   []string `json:"path"` // keys, such as mcpServers, github, command
	Value  any      `json:"value,omitempty"`
	Remove bool     `json:"remove,omitzero"`
}

// apply returns the text of the file after a change.
func (dr *draft) apply(c Change) ([]byte, error) {
	if c.Text != nil {
		if len(*c.Text) > maxText {
			return nil, fmt.Errorf("the text has %d bytes: want at most %d", len(*c.Text), maxText)
		}
		text, err := dr.secrets.reveal(*c.Text)
		if bytes.Contains(dr.base, []byte("\r\n")) && !strings.Contains(text, "\r") { // a browser's text has no \r
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		return []byte(text), err
	}
	format, ok := edit.FormatOf(dr.file.Path)
	if !ok {
		return nil, fmt.Errorf("%s: want a JSON, YAML or TOML file", dr.file.Path)
	}
	text := dr.base
	for _, e := range c.Edits {
		var err error
		if e.Remove {
			text, err = edit.Remove(text, format, e.Path)
		} else {
			text, err = edit.Set(text, format, e.Path, e.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// Outcome describes the effects of a change.
type Outcome struct {
	Path     string   `json:"path"`
	Lines    []Line   `json:"lines"`              // that change in the file, without secrets
	Problems []string `json:"problems,omitempty"` // of the new text that the old one does not have
	IsBroken bool     `json:"isBroken,omitzero"`  // the problems have an error
	// Runs are the commands and URLs of servers that are new or started differently.
	Runs []string `json:"runs,omitempty"`
	// Removed are the servers that the file no longer lists. RemovedEntries are their entries.
	Removed        []string         `json:"removed,omitempty"`
	RemovedEntries []*config.Server `json:"-"`
	// Leftovers says in sentences what becomes of the folders of removed servers. The caller sets
	// it.
	Leftovers []string `json:"leftovers,omitempty"`
	Written   bool     `json:"written,omitzero"`
	// Conflict is set if another program has changed the file. Nothing was written.
	Conflict *Conflict `json:"conflict,omitempty"`
	// Opened is the file as it was written. It is nil if it cannot be shown, or was not written.
	Opened *Opened `json:"opened,omitempty"`
	// Warning says why dowel does not use the file as it was written.
	Warning string `json:"warning,omitzero"`
}

// Line is a line that a change adds or removes.
type Line struct {
	Number  int    `json:"number"` // in the old text if it is removed, otherwise in the new one
	Removed bool   `json:"removed,omitzero"`
	Text    string `json:"text"`
}

// Conflict is the difference between a change and the file on disk, with the text that both started
// from.
type Conflict struct {
	Hunks []Hunk `json:"hunks"`
	// HasOverlap: both changed the same lines, so that the merged text has the lines of the change
	// there.
	HasOverlap bool   `json:"hasOverlap,omitzero"`
	Merged     Opened `json:"merged"` // a draft of the file on disk with the merged text
}

// Hunk is a place that the change, the file on disk, or both have changed.
type Hunk struct {
	Base    string `json:"base"`
	Mine    string `json:"mine"`
	Theirs  string `json:"theirs"` // on disk
	Overlap bool   `json:"overlap,omitzero"`
}

// Check returns what Save would do, and writes nothing.
func (d *Desk) Check(c Change) (Outcome, error) {
	dr, text, err := d.prepare(c)
	if err != nil {
		return Outcome{}, err
	}
	now, err := readText(dr.file)
	if err != nil {
		return Outcome{}, err
	}
	if dr.isStale(now, c) {
		return d.merge(dr, text, now)
	}
	return dr.compareTexts(now, text), nil
}

// isStale reports whether another program has changed the file, and the user has not seen that.
func (dr *draft) isStale(now []byte, c Change) bool {
	return !bytes.Equal(now, dr.base) && config.HashText(now) != c.Overwrite
}

// Save writes a change. It writes no text with an error that the file does not have yet: dowel
// could not use it.
func (d *Desk) Save(c Change) (Outcome, error) {
	dr, text, err := d.prepare(c)
	if err != nil {
		return Outcome{}, err
	}
	var out Outcome
	errRefused := errors.New("refused")
	_, err = atomicfile.Update(dr.file.Path, func(now []byte, exists bool) ([]byte, error) {
		if !exists {
			now = nil
		}
		if dr.isStale(now, c) {
			var err error
			if out, err = d.merge(dr, text, now); err == nil {
				err = errRefused
			}
			return nil, err
		}
		if out = dr.compareTexts(now, text); out.IsBroken {
			return nil, errRefused
		}
		return text, nil
	}, atomicfile.Options{Perm: 0o600})
	switch {
	case errors.Is(err, errRefused):
		return out, nil
	case err != nil:
		return Outcome{}, fmt.Errorf("%s is unchanged: %w", dr.file.Path, err)
	}
	out.Written = true
	if opened, err := d.openText(&draft{file: dr.file, base: text, secrets: slices.Clone(dr.secrets)}); err == nil {
		out.Opened = &opened
	}
	return out, nil
}

func (d *Desk) prepare(c Change) (*draft, []byte, error) {
	d.mu.Lock()
	dr := d.drafts[c.Draft]
	d.mu.Unlock()
	if dr == nil {
		return nil, nil, ErrNoDraft
	}
	text, err := dr.apply(c)
	return dr, text, err
}

// compareTexts returns the differences between two texts of the file.
func (dr *draft) compareTexts(old, text []byte) Outcome {
	path, hidden := dr.file.Path, slices.Clone(dr.secrets)
	out := Outcome{Path: path, Lines: []Line{}}
	before, after := linediff.SplitLines(hidden.hide(path, old)), linediff.SplitLines(hidden.hide(path, text))
	for _, c := range linediff.FindChanges(before, after) {
		for i := c.Old; i < c.OldEnd; i++ {
			out.Lines = append(out.Lines, Line{Number: i + 1, Removed: true, Text: before[i]})
		}
		for i := c.New; i < c.NewEnd; i++ {
			out.Lines = append(out.Lines, Line{Number: i + 1, Text: after[i]})
		}
	}
	was, known := config.CheckText(path, dr.file.Scope, old)
	is, problems := config.CheckText(path, dr.file.Scope, text)
	for _, p := range problems {
		if !slices.ContainsFunc(known, func(k config.Problem) bool { return k.Server == p.Server && k.Message == p.Message }) {
			out.Problems = append(out.Problems, hidden.hideIn(p.String()))
			out.IsBroken = out.IsBroken || p.Severity == config.Error
		}
	}
	if format, ok := edit.FormatOf(path); ok && len(bytes.TrimSpace(text)) > 0 {
		if _, err := edit.Parse(text, format); err != nil && !out.IsBroken {
			out.IsBroken, out.Problems = true, append(out.Problems, hidden.hideIn(err.Error()))
		}
	}
	out.Runs, out.RemovedEntries = compareServers(was, is)
	for _, s := range out.RemovedEntries {
		out.Removed = append(out.Removed, s.Name)
	}
	for i, runs := range out.Runs {
		out.Runs[i] = hidden.hideIn(runs)
	}
	return out
}

// merge returns the difference between a change and the file as it is now, and opens the merged
// text. It compares the texts without their secrets.
func (d *Desk) merge(dr *draft, mine, now []byte) (Outcome, error) {
	path := dr.file.Path
	next := &draft{file: dr.file, base: now, secrets: slices.Clone(dr.secrets)}
	base, ours, theirs := next.secrets.hide(path, dr.base), next.secrets.hide(path, mine), next.secrets.hide(path, now)
	if err := checkHidden(path, theirs); err != nil {
		return Outcome{}, err
	}
	found, merged := linediff.Merge(linediff.SplitLines(base), linediff.SplitLines(ours), linediff.SplitLines(theirs))
	c := &Conflict{Hunks: []Hunk{}}
	for _, h := range found {
		c.HasOverlap = c.HasOverlap || h.IsConflict
		c.Hunks = append(c.Hunks, Hunk{Base: strings.Join(h.Base, ""), Mine: strings.Join(h.Mine, ""), Theirs: strings.Join(h.Theirs, ""), Overlap: h.IsConflict})
	}
	c.Merged = d.keep(next, strings.Join(merged, ""))
	return Outcome{Path: path, Lines: []Line{}, Conflict: c}, nil
}
