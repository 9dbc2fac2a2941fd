package transcript

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// A long message of the user is folded to its beginning, and shown whole on demand.
func TestUserFolded(t *testing.T) {
	for name, test := range map[string]struct {
		text     string
		rows     int
		expanded int
		last     string
	}{
		"short":    {"one\ntwo", 2, 2, "two"},
		"fits":     {strings.Repeat("x\n", maxUserRows-1) + "end", maxUserRows, maxUserRows, "end"},
		"lines":    {strings.Repeat("x\n", 35000) + "end", foldedRows + 1, 35001, "… 35001 lines in all; Ctrl-O shows th…"},
		"one line": {strings.Repeat("y", 100000), foldedRows + 1, 2632, "… 100000 characters in all; Ctrl-O sh…"},
	} {
		look := Look{Width: 40, Theme: theme.New(true)}
		u := &User{Text: test.text}
		lines := u.Lines(look)
		if len(lines) != test.rows || !strings.HasSuffix(plain(lines[len(lines)-1]), test.last) {
			t.Errorf("%s: %d rows, the last is %q", name, len(lines), plain(lines[len(lines)-1]))
		}
		for _, line := range lines {
			if theme.Width(line) > look.Width {
				t.Errorf("%s: too wide: %q", name, line)
			}
		}
		look.Expanded = true
		if lines := u.Lines(look); len(lines) != test.expanded {
			t.Errorf("%s: expanded to %d rows", name, len(lines))
		}
	}
}

func plain(line string) string { return strings.TrimRight(ansi.Strip(line), " ") }
