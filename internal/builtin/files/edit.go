package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/mcp"
)

type editIn struct {
	Path   string        `json:"path" doc:"The file"`
	Edits  []Replacement `json:"edits,omitempty" doc:"Replacements, made one after another, each in the text that the one before it left; all or none" maxItems:"200"`
	Diff   string        `json:"diff,omitzero" doc:"Instead of edits: a unified diff of this one file. Its context must match; line numbers may be off or missing"`
	DryRun bool          `json:"dryRun,omitzero" doc:"Return the diff and change nothing"`
}

// Replacement is one of the edits of the tool edit.
type Replacement struct {
	Old string `json:"old" doc:"The text to replace, exactly as it is in the file, with its indentation; it must be there once, so take in enough lines around it" minLength:"1"`
	New string `json:"new" doc:"The text to put in its place"`
	All bool   `json:"all,omitzero" doc:"Replace it wherever it is"`
}

// Edited is the result of the tool edit.
type Edited struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed" doc:"Whether the file was changed; false for a dry run, and where the edits leave it as it is"`
	Count   int    `json:"count" doc:"How many replacements, or hunks of a diff, were made"`
	Added   int    `json:"added" doc:"Lines"`
	Removed int    `json:"removed" doc:"Lines"`
	Diff    string `json:"diff,omitzero" doc:"What changed, as a unified diff"`
	Note    string `json:"note,omitzero"`
}

var errConflict = errors.New("the file keeps being changed by another program: nothing was changed; read it again")

// tries is how often an edit is made again because another program has changed the file meanwhile.
const tries = 5

// maxDiff bounds the diff in a result.
const maxDiff = 64 << 10

func (s *Server) editFile(_ context.Context, in editIn) (*mcp.CallToolResult, error) {
	if (in.Diff == "") == (len(in.Edits) == 0) {
		return nil, errors.New("give either edits or diff, and one of them")
	}
	p, err := s.roots.parsePath(in.Path)
	if err != nil {
		return nil, err
	}
	at, old, err := s.resolveTarget(p)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, fmt.Errorf("no such file: %s%s; a new file is made with write", s.roots.displayPath(p), s.suggestPaths(p))
	}
	defer s.locks.lockPlace(at)()
	out := Edited{}
	for range tries {
		out, err = s.editOnce(p, in)
		if !errors.Is(err, errConflict) {
			break
		}
	}
	if err != nil {
		return nil, s.explainError(p, err)
	}
	return textAndStructured(out.summary(in.DryRun), out)
}

// editOnce reads, changes and replaces a file.
func (s *Server) editOnce(p place, in editIn) (Edited, error) {
	at, old, err := s.resolveTarget(p)
	if err != nil {
		return Edited{}, err
	}
	d, err := s.loadDocument(at)
	if err != nil {
		return Edited{}, err
	}
	changed, count, err := d.applyEdit(in)
	if err != nil {
		return Edited{}, fmt.Errorf("%s was not changed: %w", s.roots.displayPath(p), err)
	}
	out := Edited{Path: s.roots.displayPath(p), Count: count}
	out.describeChange(d.text, changed)
	if in.DryRun || changed == d.text {
		return out, nil
	}
	out.Changed = true
	r := replacement{place: at, old: old, content: d.encodeText(changed), unchanged: d.checkUnchanged}
	return out, r.replaceFile()
}

func (d *document) applyEdit(in editIn) (text string, count int, err error) {
	if in.Diff != "" {
		return d.applyPatch(in.Diff)
	}
	text = d.text
	for i, e := range in.Edits {
		n := 0
		if text, n, err = d.replaceIn(text, e); err != nil {
			if len(in.Edits) > 1 {
				err = fmt.Errorf("edit %d of %d: %w", i+1, len(in.Edits), err)
			}
			return "", 0, err
		}
		count += n
	}
	return text, count, nil
}

// describeChange records the diff, shortened if it is long, and the numbers of its lines.
func (out *Edited) describeChange(old, changed string) {
	diff := diffOf(old, changed)
	out.Added, out.Removed = diff.added, diff.removed
	out.Diff = diff.writeUnified(out.Path)
	if len(out.Diff) > maxDiff {
		cut := out.Diff[:maxDiff]
		out.Note = fmt.Sprintf("the diff has %s, of which the first %s are shown", bytesText(int64(len(out.Diff))), bytesText(maxDiff))
		out.Diff = cut[:wholeCharacters([]byte(cut))]
	}
	out.Diff = replaceInvalid(out.Diff)
	if changed == old {
		out.Note = "the edits leave the file as it is"
	}
}

func (out *Edited) summary(dry bool) string {
	did := "changed " + out.Path
	switch {
	case dry:
		did = "would change " + out.Path
	case !out.Changed:
		did = "did not change " + out.Path
	}
	text := fmt.Sprintf("%s: %d lines added, %d removed", did, out.Added, out.Removed)
	if out.Note != "" {
		text += "; " + out.Note
	}
	return text + "\n" + out.Diff
}
