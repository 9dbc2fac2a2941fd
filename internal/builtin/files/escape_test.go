package files

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
)

// link makes a symbolic link.
func (d *desk) link(target, name string) {
	d.Helper()
	d.must(os.Symlink(target, d.path(name)))
}

func TestStaysInside(t *testing.T) {
	d := newDesk(t, map[string]string{"root/in.txt": "inside", "secret.txt": "secret", "root/sub/x": "x"})
	outside := newDeskOf(t, nil, Options{Roots: []string{d.path("root")}}, client.Options{})
	outside.dir = d.path("root")
	outside.link("../secret.txt", "up")
	outside.link(d.path("secret.txt"), "absolute")
	outside.link(d.path("root/in.txt"), "absolute-inside")
	outside.link("..", "parent")
	outside.link("sub/../../secret.txt", "sneaky")
	outside.link("circle", "circle")
	outside.link("in.txt", "good")
	outside.link("nowhere", "dangling")

	lexical := []string{
		"../secret.txt", "sub/../../secret.txt", d.path("secret.txt"), "/etc/passwd", "..", "../..", d.dir, uriOf(d.path("secret.txt")),
		"file:///etc/passwd", d.path("root") + "/../secret.txt", "parent/secret.txt",
	}
	links := []string{"up", "absolute", "absolute-inside", "sneaky", "circle", "sub/../up", "parent"}
	refused := func(path, tool string, in args) {
		if got := outside.call(tool, in); !strings.HasPrefix(got, "error: ") || strings.Contains(got, "secret\n") || strings.HasSuffix(got, "secret") {
			t.Errorf("%s %s: %q", tool, path, got)
		}
	}
	for _, path := range append(links, lexical...) {
		refused(path, "read", args{"path": path})
		refused(path, "write", args{"path": path, "content": "overwritten"})
		refused(path, "edit", args{"path": path, "edits": []args{{"old": "secret", "new": "overwritten"}}})
		refused(path, "search", args{"path": path, "query": "secret"})
		refused(path, "list", args{"path": path})
		for _, uri := range []string{uriOf(outside.dir) + "/" + path, uriOf(filepath.Join(outside.dir, path))} {
			if _, err := outside.client.ReadResource(t.Context(), uri); err == nil {
				t.Errorf("the resource %s was read", uri)
			}
		}
	}
	for _, path := range lexical { // a link itself can be moved and deleted
		refused(path, "info", args{"path": path})
		refused(path, "delete", args{"path": path, "recursive": true})
		refused(path, "move", args{"from": path, "to": "moved"})
		refused(path, "move", args{"from": "in.txt", "to": path, "overwrite": true})
	}
	if d.content("secret.txt") != "secret" || d.names("") != "root secret.txt" || d.content("root/in.txt") != "inside" {
		t.Errorf("outside: %q, %s", d.content("secret.txt"), d.names(""))
	}
}

func TestSaysWhyNotOutside(t *testing.T) {
	d := newDesk(t, map[string]string{"root/in.txt": "inside", "secret.txt": "secret"})
	o := newDeskOf(t, nil, Options{Roots: []string{d.path("root")}}, client.Options{})
	o.dir = d.path("root")
	o.link("../secret.txt", "up")
	o.link("in.txt", "good")
	o.link("later.txt", "dangling")
	o.steps([]step{
		{"read", args{"path": "../secret.txt"}, "error: ../secret.txt is outside the allowed folders: " + d.path("root")},
		{"read", args{"path": "up"}, "error: up: a symbolic link leads out of the allowed folder; the allowed folders are " + d.path("root")},
		{"write", args{"path": "up", "content": "x"}, "error: up: a symbolic link leads out"},
		{"read", args{"path": "a\x00b"}, "error: NUL"},
		{"read", args{"path": "file://host/x"}, "error: is not a file:// URI"},
		// Links that stay inside the root are followed.
		{"write", args{"path": "good", "content": "through"}, "replaced good"},
		{"read", args{"path": "in.txt"}, "through"},
		{"write", args{"path": "dangling", "content": "new"}, "created dangling"},
		{"read", args{"path": "later.txt"}, "new"},
		{"edit", args{"path": "dangling", "edits": []args{{"old": "new", "new": "newer"}}}, "+newer"},
		{"info", args{"path": "good"}, "target: in.txt"},
		{"list", args{}, "good -> in.txt"},
		{"delete", args{"path": "up"}, "deleted the link up"},
		{"move", args{"from": "good", "to": "sub/best"}, "moved the link good to sub/best"},
		{"delete", args{"path": "."}, "error: is an allowed folder"},
		{"move", args{"from": ".", "to": "x"}, "error: is an allowed folder, which cannot be moved"},
		{"move", args{"from": "in.txt", "to": "."}, "error: give the new path"},
		{"delete", args{"path": "sub", "recursive": true}, "deleted the folder sub"},
	})
	if o.content("later.txt") != "newer" || d.content("secret.txt") != "secret" {
		t.Error("a file has a content that nobody wrote")
	}
}

// oddNames have whatever paths and URIs treat in a special way.
var oddNames = []string{"a b", "ünï", "日本", "new\nline", "100%", "100%20", "q?x=1", "h#f", "[x]", "{x}", "a+b&c", `"q"`, "~-._", "*", "-rf", " lead", "trail ", "...", "a;b,c", "\u202e", "e\u0301"}

func TestOddNames(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // which has fewer names
	}
	d := newDesk(t, nil)
	for _, name := range oddNames {
		path := "in " + name + "/" + name
		d.steps([]step{
			{"write", args{"path": path, "content": "content of " + name}, "created in "},
			{"read", args{"path": path}, "content of " + name},
			{"read", args{"path": uriOf(d.path(path))}, "content of " + name},
			{"edit", args{"path": path, "edits": []args{{"old": "content", "new": "text"}}}, "+text of "},
		})
		if d.content(path) != "text of "+name {
			t.Errorf("%q: %q", path, d.content(path))
		}
		var found Findings
		d.call("search", args{"query": "text of", "path": "in " + name}, &found)
		if len(found.Matches) != 1 || found.Matches[0].Path != path {
			t.Errorf("%q: %+v", path, found)
		}
		var info Info
		d.call("info", args{"path": path}, &info)
		result, err := d.client.ReadResource(t.Context(), info.URI)
		if err != nil || result.Contents[0].Text != "text of "+name || info.URI != uriOf(d.path(path)) {
			t.Errorf("%q: %v, %v", info.URI, result, err)
		}
	}
	var all Listing
	d.call("list", args{"depth": 2}, &all)
	if len(all.Entries) != 2*len(oddNames) {
		t.Errorf("%d entries", len(all.Entries))
	}
}

// A name that is not UTF-8 is in no JSON: it goes by its URI.
func TestNamesInOtherEncodings(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // other systems do not have such names
	}
	d := newDesk(t, map[string]string{"gr\xfc\xdfe/f\xff": "latin"})
	var all Listing
	text := d.call("list", args{"depth": 2}, &all)
	if len(all.Entries) != 2 || all.Entries[1].Path != uriOf(d.dir)+"/gr%FC%DFe/f%FF" {
		t.Fatalf("%s", text)
	}
	d.steps([]step{
		{"read", args{"path": all.Entries[1].Path}, "latin"},
		{"edit", args{"path": all.Entries[1].Path, "edits": []args{{"old": "latin", "new": "text"}}}, "+text"},
		{"read", args{"path": all.Entries[0].Path + "/f"}, "error: did you mean " + all.Entries[1].Path},
		{"move", args{"from": all.Entries[0].Path, "to": "fine"}, "moved the folder"},
	})
}

func TestRoots(t *testing.T) {
	d := newDesk(t, map[string]string{"a/x": "1", "b/y": "2", "a/in/z": "3"})
	two := newDeskOf(t, nil, Options{Roots: []string{d.path("a"), d.path("b"), d.path("a/in"), d.path("a")}}, client.Options{})
	if len(two.server.roots) != 2 {
		t.Errorf("the roots are %v", two.server.roots)
	}
	y := filepath.ToSlash(d.path("b/y"))
	two.steps([]step{
		{"read", args{"path": "x"}, "1"},
		{"read", args{"path": y}, "2"},
		{"read", args{"path": "../b/y"}, "2"},
		{"read", args{"path": "yellow"}, "error: no such file or folder: yellow; the folder . contains in, x"},
		{"list", args{}, "in/\nx  1 bytes\n" + y},
		{"search", args{"glob": "*"}, "in/z\nx\n" + y},
		{"info", args{"path": y}, "in the allowed folder " + d.path("b")},
		{"read", args{"path": "../c"}, "error: outside the allowed folders: " + d.path("a") + ", " + d.path("b")},
		{"move", args{"from": "x", "to": y}, "error: exists: nothing was moved; set overwrite"},
		{"move", args{"from": "x", "to": y, "overwrite": true}, "and replaced the file there"},
		{"move", args{"from": y, "to": "back/y"}, "to back/y"},
		{"move", args{"from": "back/y", "to": y}, "moved the file back/y"},
		{"move", args{"from": "in", "to": y + "2"}, "error: only files can be moved from one allowed folder to another"},
	})
	if d.content("b/y") != "1" || d.exists("a/x") || d.names("b") != "y" {
		t.Errorf("moved: %q, %s, %s", d.content("b/y"), d.names("a"), d.names("b"))
	}
	for _, root := range []string{d.path("none"), d.path("b/y")} {
		_, err := New(Options{Roots: []string{d.path("a"), root}})
		wantError(t, err, root)
	}
	t.Chdir(d.path("a/in"))
	here := newDeskOf(t, nil, Options{Roots: []string{}}, client.Options{})
	here.steps([]step{{"read", args{"path": "z"}, "3"}})
	if got := here.client.Server().Instructions; !strings.Contains(got, here.server.roots[0].path) {
		t.Errorf("the instructions are %q", got)
	}
}

func TestReadOnly(t *testing.T) {
	d := newDeskOf(t, nil, Options{ReadOnly: true}, client.Options{})
	var names []string
	for tool, err := range d.client.Tools(t.Context()) {
		d.must(err)
		names = append(names, tool.Name)
		if a := tool.Annotations; a == nil || !*a.ReadOnlyHint || *a.OpenWorldHint || tool.OutputSchema == nil {
			t.Errorf("%s: %+v", tool.Name, a)
		}
	}
	if got := strings.Join(names, " "); got != "read list search info" {
		t.Errorf("the tools are %s", got)
	}
	all := newDesk(t, nil)
	for tool, err := range all.client.Tools(t.Context()) {
		d.must(err)
		a := tool.Annotations
		if writes := strings.Contains("write edit move delete", tool.Name); *a.ReadOnlyHint == writes || writes && !*a.DestructiveHint {
			t.Errorf("%s: %+v", tool.Name, a)
		}
	}
}
