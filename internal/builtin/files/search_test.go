package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestSearches(t *testing.T) {
	d := newDesk(t, map[string]string{
		"main.go": "package main\n\nfunc main() {\n\tHello()\n}\n", "lib/hello.go": "package lib\n\n// Hello says hello.\nfunc Hello() {}\n",
		"lib/hello_test.go": "package lib\n", "web/app.ts": "hello()\r\n", "web/app.tsx": "x", "data.bin": "hello\x00", "a.b/c": "(hello)\n",
		".gitignore": "dist/\n*.log\n", "dist/out.go": "hello", "x.log": "hello", ".git/config": "hello", "web/.gitignore": "!y.log\n", "web/y.log": "hello log",
		"long": strings.Repeat("x", 1000) + "needle" + strings.Repeat("y", 1000), "latin": "sch\xf6nes needl\n",
	})
	d.steps([]step{
		{"search", args{"glob": "*.go"}, "lib/hello.go\nlib/hello_test.go\nmain.go"},
		{"search", args{"glob": "**/*.{ts,tsx}"}, "web/app.ts\nweb/app.tsx"},
		{"search", args{"glob": "lib/*_test.go"}, "lib/hello_test.go"},
		{"search", args{"glob": "./main.go"}, "main.go"},
		{"search", args{"glob": "*.go", "path": "lib"}, "lib/hello.go\nlib/hello_test.go"},
		{"search", args{"glob": "*.log"}, "web/y.log"},
		{"search", args{"glob": "dist/*"}, "[no match in the 0 files searched; files that .gitignore files exclude were not searched: set ignored to search them]"},
		{"search", args{"glob": "dist/*", "ignored": true}, "dist/out.go"},
		{"search", args{"glob": "*", "path": "dist"}, "dist/out.go"},
		{"search", args{"query": "hello"}, "a.b/c:1:(hello)\nlib/hello.go:3:// Hello says hello.\nweb/app.ts:1:hello()\nweb/y.log:1:hello log\n[1 binary files skipped]"},
		{"search", args{"query": "hello", "ignoreCase": true, "glob": "*.go"}, "lib/hello.go:3:// Hello says hello.\nlib/hello.go:4:func Hello() {}\nmain.go:4:\tHello()"},
		{"search", args{"query": `^func \w+\(`, "regexp": true}, "lib/hello.go:4:func Hello() {}\nmain.go:3:func main() {"},
		{"search", args{"query": "(hello)"}, "a.b/c:1:(hello)"},
		{"search", args{"query": `hello\(\)$`, "regexp": true, "path": "web/app.ts"}, "web/app.ts:1:hello()"},
		{"search", args{"query": "Hello", "context": 1, "glob": "*.go"}, "lib/hello.go-2-\nlib/hello.go:3:// Hello says hello.\nlib/hello.go:4:func Hello() {}\nmain.go-3-func main() {\nmain.go:4:\tHello()\nmain.go-5-}"},
		{"search", args{"query": "needle"}, "long:1:…" + strings.Repeat("x", 100) + "needle" + strings.Repeat("y", 294) + "…"},
		{"search", args{"query": "needl", "glob": "latin"}, "latin:1:sch\uFFFDnes needl"},
		{"search", args{"query": "package", "limit": 2}, "[there are more matches than these 2: narrow the search, or raise limit"},
		{"search", args{"query": "nowhere"}, "no match in the"},
		{"search", args{}, "error: want a glob"},
		{"search", args{"query": "(", "regexp": true}, "error: missing closing ): `(` (RE2 syntax"},
		{"search", args{"query": "a\nb"}, "error: each line is searched separately"},
		{"search", args{"glob": "[a"}, `error: "[a" is not a valid glob`},
		{"search", args{"glob": d.path("*.go")}, "error: is absolute"},
		{"search", args{"query": "x", "path": "lbi"}, "error: no such file or folder: lbi; did you mean lib?"},
	})
	var found Findings
	d.call("search", args{"query": "Hello()", "context": 2, "path": "main.go"}, &found)
	want := Finding{Path: "main.go", Line: 4, Text: "\tHello()", Before: []string{"", "func main() {"}, After: []string{"}"}}
	if len(found.Matches) != 1 || fmt.Sprint(found.Matches[0]) != fmt.Sprint(want) || found.Files != 1 || found.More {
		t.Errorf("got %+v", found)
	}
}

func TestIgnoreRules(t *testing.T) {
	d := newDesk(t, map[string]string{
		".gitignore":     "# comment\n\n*.o\n/top\nbuild/\n!keep.o\ndoc/**/x\nlogs/**\n\\#sharp\nspace\\ \ntrailing   \n{a}\n[ab]c\nq?z\r\n**/deep/y\n",
		"sub/.gitignore": "/here\n!*.o\n",
	})
	root := place{d.server.roots[0], "."}
	top, sub := ignoresAt(root), ignoresAt(root.child("sub"))
	for _, test := range []struct {
		name   string
		folder bool
		want   bool
	}{
		{"a.o", false, true}, {"x/a.o", false, true}, {"keep.o", false, false}, {"a.of", false, false},
		{"top", false, true}, {"x/top", false, false}, {"build", true, true}, {"build", false, false}, {"x/build", true, true},
		{"doc/x", false, true}, {"doc/a/b/x", false, true}, {"doc", true, false}, {"logs", true, false}, {"logs/a", false, true},
		{"#sharp", false, true}, {"# comment", false, false}, {"space ", false, true}, {"trailing", false, true}, {"{a}", false, true}, {"a", false, false},
		{"ac", false, true}, {"cc", false, false}, {"qxz", false, true}, {"q/z", false, false}, {"a/deep/y", false, true}, {"deep/y", false, true},
	} {
		if got := top.isIgnored(test.name, test.folder); got != test.want {
			t.Errorf("%s (folder: %v): %v", test.name, test.folder, got)
		}
	}
	for name, want := range map[string]bool{"sub/here": true, "sub/x/here": false, "sub/a.o": false, "sub/top": false, "sub/trailing": true} {
		if got := sub.isIgnored(name, false); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// tree makes 2,000 files, of which one in ten has a needle.
func tree(d *desk) {
	for i := range 2000 {
		content := fmt.Sprintf("file %d\n", i)
		if i%10 == 0 {
			content += "a needle\n"
		}
		d.put(fmt.Sprintf("d%02d/e%d/f%04d.txt", i%40, i%7, i), content)
	}
}

func TestSearchesManyFiles(t *testing.T) {
	d := newDesk(t, nil)
	tree(d)
	var reports []mcp.ProgressParams
	arguments, err := json.Marshal(args{"query": "needle", "limit": 1000})
	d.must(err)
	result, err := d.client.CallTool(t.Context(), mcp.CallToolParams{Name: "search", Arguments: arguments},
		client.CallOptions{OnProgress: func(p mcp.ProgressParams) { reports = append(reports, p) }})
	d.must(err)
	var found Findings
	d.must(json.Unmarshal(result.StructuredContent, &found))
	if len(found.Matches) != 200 || found.Files != 2000 || found.More {
		t.Errorf("%d matches in %d files", len(found.Matches), found.Files)
	}
	if !slices.IsSortedFunc(found.Matches, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("the matches are not sorted")
	}
	if len(reports) < 3 || !strings.Contains(reports[0].Message, "files seen") {
		t.Errorf("the progress is %+v", reports)
	}
	d.call("search", args{"glob": "*", "limit": 30}, &found)
	if len(found.Matches) != 30 || !found.More {
		t.Errorf("%d files, more: %v", len(found.Matches), found.More)
	}
}

func TestSearchEnds(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "x", "b": strings.Repeat("y\n", 100_000)})
	ctx, cancel := context.WithCancel(t.Context())
	r := &searcher{Server: d.server, searchIn: searchIn{Query: "y", Regexp: true}, ctx: ctx, room: MaxText}
	d.must(r.applyDefaults())
	seen := 0
	find := r.find
	r.find = func(line string) int {
		if seen++; seen == 100 {
			cancel()
		}
		find(line)
		return -1
	}
	if err := r.searchPlace(place{d.server.roots[0], "."}); err != context.Canceled || seen > 2*checkEvery {
		t.Errorf("%v after %d lines", err, seen)
	}
	if err := r.searchPlace(place{d.server.roots[0], "."}); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

func TestResultsAreBounded(t *testing.T) {
	d := newDesk(t, map[string]string{"x": strings.Repeat(strings.Repeat("y", 390)+"\n", 2000)})
	var found Findings
	text := d.call("search", args{"query": "y", "limit": 1000, "context": 10}, &found)
	if !found.More || len(text) > 2*MaxText {
		t.Errorf("%d matches, %d bytes", len(found.Matches), len(text))
	}
}

func TestLists(t *testing.T) {
	d := newDesk(t, map[string]string{"b.txt": "12", "a/x": "", "a/sub/deep/y": "", "a-b": "", ".hidden": "", ".gitignore": "node_modules\n", "node_modules/m/z": "", "new\nline": ""})
	d.must(os.Symlink("b.txt", d.path("link")))
	var out Listing
	d.steps([]step{
		{"list", args{}, ".gitignore  13 bytes\n.hidden  0 bytes\na/\na-b  0 bytes\nb.txt  2 bytes\nlink -> b.txt\nnew\\nline  0 bytes\nnode_modules/  (ignored)\n[the subfolders may contain more: raise depth to list them]"},
		{"list", args{"path": "a", "depth": 2}, "a/sub/\na/sub/deep/\na/x  0 bytes\n[the subfolders"},
		{"list", args{"path": "a", "depth": 20}, "a/sub/\na/sub/deep/\na/sub/deep/y  0 bytes\na/x  0 bytes"},
		{"list", args{"path": "node_modules", "depth": 3}, "node_modules/m/\nnode_modules/m/z  0 bytes"},
		{"list", args{"depth": 5, "limit": 3}, "[there are more than 3 entries"},
		{"list", args{"path": "b.txt"}, "error: b.txt is not a folder but a file"},
		{"list", args{"path": "c"}, "error: no such file or folder: c; did you mean a?"},
	})
	d.call("list", args{"depth": 3}, &out)
	var paths []string
	for _, e := range out.Entries {
		paths = append(paths, e.Path)
	}
	if got := strings.Join(paths, " "); got != ".gitignore .hidden a a/sub a/sub/deep a/x a-b b.txt link new\nline node_modules" {
		t.Errorf("got %q", got)
	}
	d.must(os.Mkdir(d.path("empty"), 0o755))
	d.steps([]step{{"list", args{"path": "empty"}, "[the folder is empty]"}})
}

func TestMovesAndDeletes(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1", "b": "2", "f/x": "", "f/g/y": "", "c": "3"})
	d.must(os.Link(d.path("c"), d.path("c2")))
	d.steps([]step{
		{"move", args{"from": "c", "to": "c2", "overwrite": true}, "error: c and c2 are two names of one file"},
		{"delete", args{"path": "c2"}, "deleted the file c2"},
		{"move", args{"from": "a", "to": "new/folder/a2"}, "moved the file a to new/folder/a2"},
		{"move", args{"from": "b", "to": "c"}, "error: c exists: nothing was moved; set overwrite to replace it"},
		{"move", args{"from": "b", "to": "c", "overwrite": true}, "moved the file b to c and replaced the file there"},
		{"move", args{"from": "f", "to": "f/g/f"}, "error: a folder cannot be moved into itself"},
		{"move", args{"from": "c", "to": "f"}, "error: f is an existing folder: to move something into it, give the path f/c"},
		{"move", args{"from": "f", "to": "c", "overwrite": true}, "error: c exists and is not a folder"},
		{"move", args{"from": "f", "to": "h"}, "moved the folder f to h"},
		{"move", args{"from": "f", "to": "h"}, "error: no such file or folder: f; did you mean"},
		{"move", args{"from": "c", "to": "./c"}, "error: the same path"},
		{"delete", args{"path": "h"}, "error: the folder h is not empty, it contains g, x: set recursive"},
		{"delete", args{"path": "h/x"}, "deleted the file h/x"},
		{"delete", args{"path": "h", "recursive": true}, "deleted the folder h"},
		{"delete", args{"path": "new/folder/a2"}, "deleted the file"},
		{"delete", args{"path": "new/folder"}, "deleted the folder new/folder"},
		{"delete", args{"path": "nwe"}, "error: no such file or folder: nwe; did you mean new?"},
	})
	if got := d.names("."); got != "c new" || d.content("c") != "2" {
		t.Errorf("left: %s, %q", got, d.content("c"))
	}
}

// A file that appears in the target root during a move is not replaced, and the source stays.
func TestTransferReplacesNothing(t *testing.T) {
	d := newDesk(t, map[string]string{"a/x": "1", "b/x": "2"})
	two := newDeskOf(t, nil, Options{Roots: []string{d.path("a"), d.path("b")}}, client.Options{})
	from, to := place{two.server.roots[0], "x"}, place{two.server.roots[1], "x"}
	info, err := from.root.Lstat("x")
	d.must(err)
	wantError(t, two.server.renamePlace(t.Context(), from, to, info, false), "another program has just created x: nothing was moved")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := two.server.renamePlace(ctx, from, to, info, true); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if d.content("a/x") != "1" || d.content("b/x") != "2" || d.names("b") != "x" {
		t.Errorf("a file was replaced, or something is left: %s", d.names("b"))
	}
}

// A file that appears at the new path in the last moment is not replaced.
func TestMoveReplacesNothing(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1", "b": "2"})
	root := d.server.roots[0]
	from, to := place{root, "a"}, place{root, "b"}
	info, err := root.Lstat("a")
	d.must(err)
	wantError(t, d.server.renamePlace(t.Context(), from, to, info, false), "another program has just created b: nothing was moved")
	if d.content("a") != "1" || d.content("b") != "2" {
		t.Error("a file was replaced")
	}
}

func TestInfo(t *testing.T) {
	d := newDesk(t, map[string]string{"dir/a.go": "package a\n", "b.png": png})
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d.must(os.Chtimes(d.path("dir/a.go"), when, when))
	var got Info
	d.call("info", args{"path": "dir/a.go"}, &got)
	want := Info{
		Path: "dir/a.go", Absolute: d.path("dir/a.go"), URI: uriOf(d.path("dir/a.go")), Root: d.dir, Kind: "file", Size: 10, Modified: when,
		Permissions: got.Permissions, MIMEType: "text/plain", Encoding: "utf-8",
	}
	if got != want {
		t.Errorf("got %+v", got)
	}
	d.steps([]step{
		{"info", args{"path": "dir"}, "folder dir (in the allowed folder " + d.dir + ")\n1 entries, modified "},
		{"info", args{"path": "b.png"}, "image/png"},
		{"info", args{"path": "dir/b.go"}, "error: no such file or folder: dir/b.go; did you mean dir/a.go?"},
		{"info", args{"path": "dri/a.go"}, "error: no such file or folder: dri/a.go; did you mean dir/a.go?"},
		{"info", args{"path": "dir/a.md"}, "error: did you mean dir/a.go?"},
	})
}
