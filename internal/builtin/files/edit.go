package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/mcp"
)

type editIn struct {
	Path   string        `json:"path" doc:"The file"`
	Edits  []Replacement `json:"edits,omitempty" doc:"Replacements, applied in this order, each to the result of the previous one; if one fails, the file stays unchanged" maxItems:"200"`
	Diff   string        `json:"diff,omitzero" doc:"Instead of edits: a unified diff of this file only. Its context must match; line numbers may be wrong or missing"`
	DryRun bool          `json:"dryRun,omitzero" doc:"Return the diff and change nothing"`
}

// Replacement is one of the edits of the tool edit.
type Replacement struct {
	Old string `json:"old" doc:"The text to replace, exactly as in the file, with its indentation. It must occur only once, so include enough surrounding lines" minLength:"1"`
	New string `json:"new" doc:"The text that replaces it"`
	All bool   `json:"all,omitzero" doc:"Replace all occurrences of old"`
}

// Edited is the result of the tool edit.
type Edited struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed" doc:"Whether the file was changed; false for a dry run, and if the result of the edits is the same text"`
	Count   int    `json:"count" doc:"The number of replacements made, or of hunks applied"`
	Added   int    `json:"added" doc:"The number of added lines"`
	Removed int    `json:"removed" doc:"The number of removed lines"`
	Diff    string `json:"diff,omitzero" doc:"The change as a unified diff"`
	Note    string `json:"note,omitzero"`
}

var errConflict = errors.New("another program keeps changing the file: the edit was not made; read the file again")

// maxAttempts bounds the attempts of an edit. An attempt fails if another program changes the file
// at the same time.
const maxAttempts = 5

// maxDiff bounds the diff in a result.
const maxDiff = 64 << 10

func (s *Server) editFile(_ context.Context, in editIn) (*mcp.CallToolResult, error) {
	if (in.Diff == "") == (len(in.Edits) == 0) {
		return nil, errors.New("want either edits or diff, not both and not neither")
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
		return nil, fmt.Errorf("no such file: %s%s; to create a file, use write", s.roots.displayPath(p), s.suggestPaths(p))
	}
	defer s.locks.lockPlace(at)()
	out := Edited{}
	for range maxAttempts {
		out, err = s.editOnce(p, in)
		if !errors.Is(err, errConflict) {
			break
		}
	}
	if err != nil {
		return nil, s.explainError(p, err)
	}
	return textAndStructured(out.formatSummary(in.DryRun), out)
}

// editOnce reads, changes and replaces a file. It returns errConflict if another program changes
// the file meanwhile.
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

// describeChange sets the diff, cut after maxDiff bytes, and the numbers of added and removed
// lines.
func (out *Edited) describeChange(old, changed string) {
	diff := diffOf(old, changed)
	out.Added, out.Removed = diff.added, diff.removed
	out.Diff = diff.writeUnified(out.Path)
	if len(out.Diff) > maxDiff {
		cut := out.Diff[:maxDiff]
		out.Note = fmt.Sprintf("the diff has %s; only the first %s are shown", bytesText(int64(len(out.Diff))), bytesText(maxDiff))
		out.Diff = cut[:wholeCharacters([]byte(cut))]
	}
	out.Diff = replaceInvalid(out.Diff)
	if changed == old {
		out.Note = "the result of the edits is the same text"
	}
}

func (out *Edited) formatSummary(dry bool) string {
	outcome := "changed " + out.Path
	switch {
	case dry:
		outcome = "would change " + out.Path
	case !out.Changed:
		outcome = "did not change " + out.Path
	}
	lines := "lines"
	if out.Added == 1 {
		lines = "line"
	}
	text := fmt.Sprintf("%s: %d %s added, %d removed", outcome, out.Added, lines, out.Removed)
	if out.Note != "" {
		text += "; " + out.Note
	}
	return text + "\n" + out.Diff
}
