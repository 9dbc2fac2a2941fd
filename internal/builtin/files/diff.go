package files

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/linediff"
)

// around is the number of context lines before and after a change.
const around = 3

// diff is the difference between two texts.
type diff struct {
	old, new       []string          // lines with their line ends
	changes        []linediff.Change // in order
	added, removed int
}

func diffOf(old, new string) *diff {
	d := &diff{old: linediff.SplitLines(old), new: linediff.SplitLines(new)}
	d.changes = linediff.FindChanges(d.old, d.new)
	for _, c := range d.changes {
		d.removed += c.OldEnd - c.Old
		d.added += c.NewEnd - c.New
	}
	return d
}

// writeUnified returns the unified diff, or "" if the texts are the same.
func (d *diff) writeUnified(name string) string {
	if len(d.changes) == 0 {
		return ""
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
		name = strings.Trim(strconv.Quote(name), `"`)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n", name, name)
	for i := 0; i < len(d.changes); {
		end := i + 1
		for end < len(d.changes) && d.changes[end].Old-d.changes[end-1].OldEnd <= 2*around {
			end++
		}
		d.writeHunk(&b, d.changes[i:end])
		i = end
	}
	return b.String()
}

// writeHunk writes adjacent changes as one hunk with context.
func (d *diff) writeHunk(b *strings.Builder, changes []linediff.Change) {
	first, last := changes[0], changes[len(changes)-1]
	lead := min(around, first.Old)
	end := min(last.OldEnd+around, len(d.old))
	fmt.Fprintf(b, "@@ -%s +%s @@\n", formatSpan(first.Old-lead, end), formatSpan(first.New-lead, end+last.NewEnd-last.OldEnd))
	at := first.Old - lead
	for _, c := range changes {
		writeLines(b, ' ', d.old[at:c.Old])
		writeLines(b, '-', d.old[c.Old:c.OldEnd])
		writeLines(b, '+', d.new[c.New:c.NewEnd])
		at = c.OldEnd
	}
	writeLines(b, ' ', d.old[at:end])
}

// formatSpan formats the range of lines [from, end) for the header of a hunk.
func formatSpan(from, end int) string {
	switch n := end - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

func writeLines(b *strings.Builder, op byte, lines []string) {
	for _, line := range lines {
		b.WriteByte(op)
		b.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
