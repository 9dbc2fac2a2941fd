package screen

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

var styleSequence = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// styleNames are short names of styles in testdata/styles. The sixteen colours keep their numbers.
var styleNames = map[string]string{"": "", "0": "", "1": "bold", "2": "dim", "3": "italic", "4": "line", "7": "reverse", "9": "strike"}

// nameStyles replaces styles by names in double angle brackets, such as «dim» or «96 bold»; «» ends
// them.
func nameStyles(content string) string {
	return styleSequence.ReplaceAllStringFunc(content, func(sequence string) string {
		var names []string
		for code := range strings.SplitSeq(styleSequence.FindStringSubmatch(sequence)[1], ";") {
			name, ok := styleNames[code]
			if !ok {
				name = code
			}
			names = append(names, name)
		}
		return "«" + strings.Join(names, " ") + "»"
	})
}

// checkStyles compares the screen with testdata/styles in both themes and at each size.
func (d *driver) checkStyles(name string) {
	d.t.Helper()
	var got strings.Builder
	for _, theme := range []Theme{Dark, Light} {
		d.send(ThemeChosen{theme})
		for _, size := range sizes {
			d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			fmt.Fprintf(&got, "=== %s %dx%d\n", theme, size[0], size[1])
			for line := range strings.SplitSeq(nameStyles(d.model.View().Content), "\n") {
				fmt.Fprintln(&got, strings.TrimRight(line, " "))
			}
		}
	}
	d.send(ThemeChosen{Auto})
	path := filepath.Join("testdata", "styles", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			d.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	if got.String() != string(want) {
		d.t.Errorf("%s is\n%s\nwant\n%s", path, got.String(), want)
	}
}

// The change of a file is in the colours of a diff, in the approval and in the result.
func TestScreenDiff(t *testing.T) {
	d := newDriver(t)
	d.send(Taken{"Add a step."}, CallStarted{"1", toolcard.Card{Tool: "files.edit", Brief: "path=plan.md"}})
	d.send(CallEnded{"1", toolcard.Card{State: toolcard.Succeeded, Facts: "1 ms, 80 B", Result: "changed plan.md\n--- plan.md\n+++ plan.md\n@@ -1,2 +1,3 @@\n 1. Write\n-2. Tag\n+2. Test\n+3. Tag"}})
	d.checkGolden("diff")
	d.checkStyles("diff")
	if !d.shows("+2. Test") || d.shows("@@") {
		t.Error("the folded call does not show the changed lines alone")
	}
	d.press("ctrl+o")
	d.checkStyles("diff-expanded")
	if !d.shows("@@ -1,2 +1,3 @@") {
		t.Error("the expanded call hides a part of the result")
	}
}

// Code in a reply has the colours of its language.
func TestScreenCode(t *testing.T) {
	d := newDriver(t)
	d.send(Taken{"Show me."}, Said{"```go\n// Sum adds.\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n```\n\n```sh\nif true; then echo \"$HOME\"; fi # home\n```\n\n" +
		"```json\n{\"name\": \"dowel\", \"size\": 3}\n```\n\n```diff\n-old\n+new\n```\n\n```unknown\nreturn 1\n```\n"}, Replied{})
	d.checkGolden("code")
	d.checkStyles("code")
}

// Notices, failed and refused calls, and the state of the servers have colours of their own.
func TestScreenTrouble(t *testing.T) {
	d := newDriver(t)
	d.send(Noticed{transcript.Info, "a remark"}, Noticed{transcript.Warning, "a warning"}, Noticed{transcript.Trouble, "no connection to files\nsee dowel doctor files"})
	d.send(CallEnded{"1", toolcard.Card{Tool: "a_server_with_a_long_name.a_tool_with_an_even_longer_name", Brief: "path=a/folder/with/a/long/name/and/a/file.txt", State: toolcard.Failed, Facts: "failed after 1 ms", Result: "no such file"}})
	d.send(CallEnded{"2", toolcard.Card{Tool: "files.delete", Brief: "path=a.txt", State: toolcard.Refused, Facts: "not run: the user refused"}})
	d.send(ModelChosen{"a-model-with-a-name-that-is-longer-than-others"}, ServersChanged{Ready: 2, Starting: 1, NeedLogin: 1, Failed: 1}, ContextUsed{Used: 120_000, Window: 128_000})
	d.checkGolden("trouble")
	d.checkStyles("trouble")
}
