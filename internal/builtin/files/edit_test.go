package files

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// edits are the arguments of an edit by replacements: old and new in turn.
func edits(path string, texts ...string) args {
	var all []args
	for i := 0; i < len(texts); i += 2 {
		all = append(all, args{"old": texts[i], "new": texts[i+1]})
	}
	return args{"path": path, "edits": all}
}

func TestWrites(t *testing.T) {
	d := newDesk(t, map[string]string{"old.txt": "old", "run.sh": "#!/bin/sh\n", "locked": "x"})
	d.must(os.Chmod(d.path("run.sh"), 0o750))
	d.must(os.Chmod(d.path("locked"), 0o444))
	long := strings.Repeat("n", 255)
	d.steps([]step{
		{"write", args{"path": "a/b/new.txt", "content": "grüße\n"}, "created a/b/new.txt (8 bytes)"},
		{"write", args{"path": "old.txt", "content": ""}, "replaced old.txt (0 bytes)"},
		{"write", args{"path": "run.sh", "content": "exit\n"}, "replaced run.sh"},
		{"write", args{"path": "a/b", "content": "x"}, "error: a/b is a folder"},
		{"write", args{"path": "a/b/new.txt/c", "content": "x"}, "error: a part of the path is a file"},
		{"write", args{"path": "folder/", "content": "x"}, "error: is the path of a folder"},
		{"write", args{"path": long, "content": "x"}, "created n"},
		{"write", args{"path": long + "n", "content": "x"}, "error: name too long"},
		{"write", args{"path": "locked", "content": "y"}, "error: locked is write-protected"},
		{"edit", edits("locked", "x", "y"), "error: locked is write-protected"},
		{"write", args{"path": "x"}, "error: invalid arguments"},
	})
	var out Written
	d.call("write", args{"path": "c", "content": "x"}, &out)
	if out != (Written{"c", true, 1}) || d.content("a/b/new.txt") != "grüße\n" || d.content("old.txt") != "" || d.content("locked") != "x" {
		t.Errorf("%+v", out)
	}
	if info, err := os.Stat(d.path("run.sh")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o750 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if got := d.names("."); got != "a c locked "+long+" old.txt run.sh" {
		t.Errorf("left behind: %s", got)
	}
}

const program = `package main

func one() int {
	return 1
}

func two() int {
	return 2
}
`

func TestReplacements(t *testing.T) {
	d := newDesk(t, map[string]string{"main.go": program, "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\r\nc\nd\n", "bom": byteOrder8 + "a\n", "open": "a\nb", "latin": "gr\xfcn und blau\n"})
	d.must(os.Chmod(d.path("main.go"), 0o600))
	for _, test := range []struct {
		in    args
		after string
	}{
		{edits("main.go", "return 1", "return 10", "return 10\n", "return 100\n"), strings.Replace(program, "return 1", "return 100", 1)},
		{args{"path": "main.go", "edits": []args{{"old": "func ", "new": "func the", "all": true}}}, strings.ReplaceAll(strings.Replace(program, "return 1", "return 100", 1), "func ", "func the")},
		{edits("crlf", "a\nb\n", "a\nx\nb\n"), "a\r\nx\r\nb\r\n"},
		{edits("crlf", "x\r\nb", "y\r\nb"), "a\r\ny\r\nb\r\n"},
		{edits("mixed", "a\nb", "A\nB"), "A\r\nB\r\nc\nd\n"},
		{edits("mixed", "c\nd", "C\nD"), "A\r\nB\r\nC\nD\n"},
		{edits("bom", "a", "b"), byteOrder8 + "b\n"},
		{edits("open", "b", "c"), "a\nc"},
		{edits("open", "c", "c\n"), "a\nc\n"},
		{edits("latin", "blau", "rot"), "gr\xfcn und rot\n"},
	} {
		path := test.in["path"].(string)
		before := d.content(path)
		var out Edited
		dry := args{"dryRun": true}
		for k, v := range test.in {
			dry[k] = v
		}
		tried := d.call("edit", dry, &out)
		if out.Changed || d.content(path) != before || !strings.HasPrefix(tried, "would change "+path) {
			t.Errorf("dry run of %v: %s", test.in, tried)
		}
		text := d.call("edit", test.in, &out)
		if got := d.content(path); got != test.after || !out.Changed || !strings.HasPrefix(text, "changed "+path) || !strings.HasSuffix(text, out.Diff) || out.Diff == "" {
			t.Errorf("%v: %q\n%s", test.in, got, text)
		}
	}
	if info, err := os.Stat(d.path("main.go")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if got := d.names("."); got != "bom crlf latin main.go mixed open" {
		t.Errorf("left behind: %s", got)
	}
}

func TestEditsThatFail(t *testing.T) {
	d := newDesk(t, map[string]string{"main.go": program, "open": "a\nb", "latin": "gr\xfcn\n", "empty": ""})
	d.steps([]step{
		{"edit", edits("main.go", "return", "x"), "error: old occurs 2 times, on the lines 4, 8: include more surrounding lines"},
		{"edit", edits("main.go", "return 1", "return 3", "return 9", "x"), "error: main.go was not changed: edit 2 of 2: the file does not contain old; the most similar text is on line 4:\n\treturn 3"},
		{"edit", edits("main.go", "func two() int {\n    return 2\n}", "x"), "error: a text that differs from it only in white space (indentation, tabs, trailing blanks, empty lines around it) is on lines 7 to 9:\nfunc two() int {\n\treturn 2\n}"},
		{"edit", edits("main.go", "func two() (int, error) {\n\treturn 2, nil\n}", "x"), "error: the most similar text is on lines 7 to 9:\nfunc two() int {\n\treturn 2\n}"},
		{"edit", edits("main.go", "日本語のテキスト", "x"), "error: the file contains neither old nor a similar text: read the file again"},
		{"edit", edits("open", "b\n", "c\n"), "error: old ends with a line end, but the file does not, on line 2:\nb"},
		{"edit", edits("latin", "gr\uFFFDn", "x"), "error: old contains U+FFFD"},
		{"edit", edits("empty", "a", "b"), "error: nor a similar text"},
		{"edit", edits("open", "a", "a"), "error: old and new are the same"},
		{"edit", edits("open", "", "a"), "error: invalid arguments"},
		{"edit", edits("open", "a", "b", "b\nb", "a\nb"), "did not change open: 0 lines added, 0 removed; the result of the edits is the same text"},
		{"edit", args{"path": "open"}, "error: want either edits or diff"},
		{"edit", args{"path": "open", "diff": "@@ -1 +1 @@\n-a\n+b\n", "edits": []args{{"old": "a", "new": "b"}}}, "error: want either edits or diff"},
		{"edit", edits("none", "a", "b"), "error: no such file: none; the folder . contains empty, latin, main.go, open; to create a file, use write"},
		{"edit", args{"path": "open", "diff": "@@ -1 +1 @@\n-x\n+b\n"}, "error: open was not changed: hunk 1 of 1 (@@ -1 +1 @@): the file contains neither its context"},
		{"edit", args{"path": "open", "diff": "@@ -1 +1 @@\n-a\n+A\n"}, "changed open: 1 line added, 1 removed\n--- a/open\n+++ b/open\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"},
	})
	if d.content("main.go") != program || d.content("open") != "A\nb" {
		t.Errorf("changed: %q, %q", d.content("main.go"), d.content("open"))
	}
}

func TestLongDiff(t *testing.T) {
	d := newDesk(t, map[string]string{"x": numbered(20_000)})
	var out Edited
	d.call("edit", args{"path": "x", "edits": []args{{"old": "line", "new": "Zeile", "all": true}}}, &out)
	if len(out.Diff) > maxDiff || !strings.Contains(out.Note, "only the first 64.0 KiB are shown") || out.Added != 20_000 || out.Count != 20_000 {
		t.Errorf("%d bytes of diff, %d, %q", len(out.Diff), out.Added, out.Note)
	}
}

// Edits of one file at the same time are all made, by one client and by others.
func TestEditsAtOneTime(t *testing.T) {
	const n = 40
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "item %d.\n", i)
	}
	d := newDesk(t, map[string]string{"x": b.String()})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			result := d.resultOf(d.client, "edit", edits("x", fmt.Sprintf("item %d.", i), fmt.Sprintf("done %d.", i)))
			if result.IsError {
				t.Error(result.Content[0].Text)
			}
		})
	}
	wg.Wait()
	if got, want := d.content("x"), strings.ReplaceAll(b.String(), "item", "done"); got != want || d.names(".") != "x" {
		t.Errorf("%s: %s", d.names("."), got)
	}
}

// If another program writes the file during an edit, the edit is repeated on the new content.
func TestEditMeetsAnotherProgram(t *testing.T) {
	d := newDesk(t, map[string]string{"x": "a\nb\n"})
	at, old, err := d.server.resolveTarget(place{d.server.roots[0], "x"})
	d.must(err)
	doc, err := d.server.loadDocument(at)
	d.must(err)
	d.put("x", "a\nb\nc\n")
	r := replacement{place: at, old: old, content: []byte("lost"), unchanged: doc.checkUnchanged}
	if err := r.replaceFile(); err != errConflict && err.Error() != errConflict.Error() {
		t.Errorf("got %v", err)
	}
	if d.content("x") != "a\nb\nc\n" || d.names(".") != "x" {
		t.Errorf("%s: %q", d.names("."), d.content("x"))
	}
	d.must(os.Remove(d.path("x")))
	if err := r.replaceFile(); err == nil || d.exists("x") {
		t.Errorf("got %v for a file that is gone", err)
	}
}
