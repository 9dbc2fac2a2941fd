package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
)

// desk is a watcher of real files with the system's notices.
type desk struct {
	*Watcher
	t       *testing.T
	dir     string
	changes chan []Change
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, dir: t.TempDir(), changes: make(chan []Change)}
	d.Watcher = New(Options{Quiet: 30 * time.Millisecond, Limit: 300 * time.Millisecond, Poll: time.Hour, Warn: func(err error) { t.Error(err) }})
	go func() {
		defer close(d.changes)
		for c := range d.Changes(t.Context()) {
			d.changes <- c
		}
	}()
	t.Cleanup(func() {
		d.Close()
		for range d.changes {
		}
	})
	return d
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) put(name, content string) {
	d.t.Helper()
	d.must(os.WriteFile(d.path(name), []byte(content), 0o644))
}

func (d *desk) files(names ...string) {
	d.t.Helper()
	var t Targets
	for _, n := range names {
		t.Files = append(t.Files, d.path(n))
	}
	d.must(d.Set(t))
}

// told waits until these have been told, in words such as "created a".
func (d *desk) told(want ...string) {
	d.t.Helper()
	var got []string
	for timeout := time.After(10 * time.Second); len(got) < len(want); {
		select {
		case changes := <-d.changes:
			for _, c := range changes {
				name, err := filepath.Rel(d.dir, c.Path)
				d.must(err)
				got = append(got, fmt.Sprintf("%v %s", c.Kind, filepath.ToSlash(name)))
			}
		case <-timeout:
			d.t.Fatalf("told %q, want %q", got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.t.Fatalf("told %q, want %q", got, want)
	}
}

// fence makes sure that nothing else has been told: a change comes after all before it.
func (d *desk) fence(name string) {
	d.t.Helper()
	d.put(name, time.Now().String())
	var changes []Change
	select {
	case changes = <-d.changes:
	case <-time.After(10 * time.Second):
	}
	if len(changes) != 1 || filepath.Base(changes[0].Path) != name {
		d.t.Fatalf("told %+v beside the fence", changes)
	}
}

func TestEditors(t *testing.T) {
	for name, save := range map[string]func(d *desk, content string){
		"in place": func(d *desk, content string) { d.put("a", content) },
		"rename over it": func(d *desk, content string) {
			d.put("a.tmp", content)
			d.must(os.Rename(d.path("a.tmp"), d.path("a")))
		},
		"vim": func(d *desk, content string) {
			d.put("4913", "")
			d.must(os.Remove(d.path("4913")))
			d.must(os.Rename(d.path("a"), d.path("a~")))
			d.put("a", content)
			d.must(os.Remove(d.path("a~")))
		},
		"remove and write": func(d *desk, content string) {
			d.must(os.Remove(d.path("a")))
			d.put("a", content)
		},
		"atomicfile": func(d *desk, content string) {
			_, err := atomicfile.Update(d.path("a"), func([]byte, bool) ([]byte, error) { return []byte(content), nil }, atomicfile.Options{Backup: true})
			d.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.put("a", "0")
			d.files("a", "fence")
			for i := range 3 {
				save(d, fmt.Sprint("content ", i))
				d.told("modified a")
			}
			save(d, "content 2")
			d.fence("fence")
		})
	}
}

func TestLinks(t *testing.T) {
	d := newDesk(t)
	for _, folder := range []string{"v1", "v2", "links"} {
		d.must(os.Mkdir(d.path(folder), 0o755))
		d.put(folder+"/a", "in "+folder)
	}
	d.must(os.Symlink("v1", d.path("current")))
	d.must(os.Symlink("../current/a", d.path("links/a2")))
	d.must(os.Symlink(d.path("links/a2"), d.path("a")))
	d.files("a", "fence")
	d.put("v1/a", "new")
	d.told("modified a")
	d.must(os.Symlink("v2", d.path("next")))
	d.must(os.Rename(d.path("next"), d.path("current"))) // as Kubernetes does
	d.told("modified a")
	d.put("v2/a", "newer")
	d.told("modified a")
	d.put("v1/a", "nobody's")
	d.fence("fence")
	d.must(os.Remove(d.path("links/a2")))
	d.told("removed a")
	d.put("links/a2", "a file")
	d.told("created a")
	if err := d.Expect(d.path("links/a2"), atomicfile.Hash([]byte("own"))); err != nil {
		t.Fatal(err)
	}
	d.put("links/a2", "own")
	d.fence("fence")
	d.must(os.Symlink("circle", d.path("circle")))
	d.files("circle", "fence")
	d.must(os.Remove(d.path("circle")))
	d.put("circle", "broken up")
	d.told("modified circle") // before, it could not be read
}

func TestFoldersComeAndGo(t *testing.T) {
	d := newDesk(t)
	d.files("x/y/z/a", "fence")
	for range 2 {
		d.must(os.MkdirAll(d.path("x/y"), 0o755))
		d.fence("fence")
		d.must(os.Mkdir(d.path("x/y/z"), 0o755))
		d.put("x/y/z/a", "1")
		d.told("created x/y/z/a")
		d.put("x/y/z/a", "2")
		d.told("modified x/y/z/a")
		d.must(os.Rename(d.path("x/y/z"), d.path("x/y/away")))
		d.told("removed x/y/z/a")
		d.must(os.Rename(d.path("x/y/away"), d.path("x/y/z")))
		d.told("created x/y/z/a")
		d.must(os.RemoveAll(d.path("x")))
		d.told("removed x/y/z/a")
	}
	d.put("x", "a file where a folder was")
	d.fence("fence")
	d.must(os.Remove(d.path("x")))
	d.must(os.MkdirAll(d.path("x/y/z/a"), 0o755)) // a folder where a file should be
	d.fence("fence")
}

// TestStorm rewrites a file fifty times a second in the rudest way.
func TestStorm(t *testing.T) {
	d := newDesk(t)
	d.files("a")
	content := func(n int) string { return strings.Repeat(fmt.Sprint(n, " "), 1000) }
	hashes := map[string]bool{}
	for n := range 100 {
		hashes[atomicfile.Hash([]byte(content(n)))] = true
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for n := range 100 {
			text := content(n)
			f, err := os.Create(d.path("a"))
			if err != nil {
				t.Error(err)
				return
			}
			for len(text) > 0 { // in halves
				k := (len(text) + 1) / 2
				f.WriteString(text[:k])
				text = text[k:]
			}
			f.Close()
			time.Sleep(20 * time.Millisecond)
		}
	}()
	told, half, last := 0, 0, ""
	for timeout := time.After(20 * time.Second); last != atomicfile.Hash([]byte(content(99))); told++ {
		select {
		case changes := <-d.changes:
			if last = changes[0].Hash; !hashes[last] {
				half++
			}
		case <-timeout:
			t.Fatalf("the final content was not told in %d changes", told)
		}
	}
	<-finished
	// 2 s of rewriting, told every 300 ms.
	if told < 2 || told > 20 || half > told/2 {
		t.Errorf("told %d times, %d of them with halves", told, half)
	}
}

func TestGlobs(t *testing.T) {
	d := newDesk(t)
	for _, folder := range []string{"src/deep/er", "src/node_modules/x", "lib[1]", "named"} {
		d.must(os.MkdirAll(d.path(folder), 0o755))
	}
	d.put("src/a.go", "1")
	d.must(os.Symlink("named", d.path("link")))
	fence := d.path("fence")
	globs := func(patterns ...string) {
		t.Helper()
		target := Targets{Files: []string{fence}}
		for _, p := range patterns {
			target.Globs = append(target.Globs, d.path(p))
		}
		d.must(d.Set(target))
	}
	globs("src/**/*.go", "lib[1]", "link", "later/*/conf", "src/deep")
	d.put("src/a.go", "2")
	d.told("modified src/a.go")
	d.put("src/a.txt", "nobody's")
	d.put("src/node_modules/x/a.go", "nobody's")
	d.put("named/in link", "1")
	d.told("created link/in link")
	d.put("lib[1]/x", "1")
	d.put("src/deep/er/b.go", "1")
	d.told("created lib[1]/x", "created src/deep/er/b.go")
	d.must(os.MkdirAll(d.path("later/x/conf/d"), 0o755)) // a folder that matches means all below
	d.put("later/x/conf/d/f", "1")
	d.put("later/x/other", "1")
	d.told("created later/x/conf/d/f")
	d.must(os.MkdirAll(d.path("src/new/er"), 0o755))
	d.put("src/new/er/c.go", "1")
	d.told("created src/new/er/c.go")
	d.must(os.Rename(d.path("src/new"), d.path("src/newer")))
	d.told("created src/newer/er/c.go", "removed src/new/er/c.go")
	d.must(os.Remove(d.path("link"))) // and with it all that is below
	d.told("removed link/in link")
	d.fence("fence")

	globs("src/**/*.go", "named") // the one goes on, the other begins
	d.put("named/more", "1")
	d.told("created named/more")
	d.put("src/deep/er/b.txt", "nobody's any more")
	d.fence("fence")
	if err := d.Set(Targets{Globs: []string{"["}}); err == nil {
		t.Error("a pattern that is none")
	}
}

func TestWhichTargets(t *testing.T) {
	d := newDesk(t)
	d.must(os.MkdirAll(d.path("node_modules/x"), 0o755))
	all, js, file := d.path("**"), d.path("*/x/*.js"), d.path("a.js")
	named := d.path("*") + string(filepath.Separator) + filepath.Join("node_modules", "*.js") // below a folder that is not there
	d.must(d.Set(Targets{Files: []string{file}, Globs: []string{all, js, named, d.path("node_modules")}}))
	d.put("a.js", "1")
	d.put("node_modules/x/b.js", "1")
	got := map[string]Change{}
	for timeout := time.After(10 * time.Second); len(got) < 2; {
		select {
		case changes := <-d.changes:
			for _, c := range changes {
				got[filepath.Base(c.Path)] = c
			}
		case <-timeout:
			t.Fatalf("told %v", got)
		}
	}
	if c := got["a.js"]; !c.File || !slices.Equal(c.Globs, []string{all}) {
		t.Errorf("%+v", c)
	}
	if c := got["b.js"]; c.File || !slices.Equal(c.Globs, []string{d.path("node_modules")}) {
		t.Errorf("%+v", c)
	}
}

func TestBigFilesOfGlobs(t *testing.T) {
	d := newDesk(t)
	d.must(d.Set(Targets{Globs: []string{d.dir}}))
	d.put("big", strings.Repeat("x", maxHashed+1))
	d.told("created big")
	d.put("big", strings.Repeat("x", maxHashed+2))
	select {
	case c := <-d.changes:
		if c[0].Kind != Modified || c[0].Hash != "" {
			t.Errorf("%+v", c)
		}
	case <-time.After(10 * time.Second):
		t.Error("not told")
	}
}

func TestUnreadable(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return // whoever may read all; TestLinks has a file that cannot be read by anybody
	}
	d := newDesk(t)
	d.put("a", "1")
	d.files("a")
	d.must(os.Chmod(d.path("a"), 0))
	d.told("modified a")
	d.must(os.Chmod(d.path("a"), 0o600))
	d.told("modified a")
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want, leads   bool
	}{
		{"*.go", "a.go", true, true},
		{"*.go", "b/a.go", false, false},
		{"*.go", "b.go/a", true, true}, // below a folder that matches
		{"**", "a/b", true, true},
		{"**/*.go", "a.go", true, true},
		{"**/*.go", "x/y/a.go", true, true},
		{"**/*.go", "x/y", false, true},
		{"a/**/b", "a/b", true, true},
		{"a/**/b", "a/x/b/y", true, true},
		{"a/**/b", "x", false, false},
		{"a/?", "a", false, true},
	} {
		g := glob{rest: strings.Split(tt.pattern, "/")}
		names := strings.Split(tt.name, "/")
		if got, leads := g.matches(names), g.leads(names); got != tt.want || leads != tt.leads {
			t.Errorf("%s and %s: matches %v, leads %v", tt.pattern, tt.name, got, leads)
		}
	}
}

func TestKinds(t *testing.T) {
	if got := fmt.Sprint(Created, Modified, Removed, Kind(7)); got != "created modified removed Kind(7)" {
		t.Error(got)
	}
}

func TestLimits(t *testing.T) {
	d := newDesk(t)
	var warned []string
	w := newWatcher(Options{Warn: func(err error) { warned = append(warned, err.Error()) }}, silent())
	g, err := compile(Targets{Globs: []string{d.dir}})
	d.must(err)
	w.targets = g
	d.put("a", "1")
	s := w.survey()
	s.folders = maxFolders
	real, err := filepath.EvalSymlinks(d.dir)
	d.must(err)
	s.places = newPlaces()
	s.tree(g.globs[0], d.dir, real, nil)
	if len(s.places.folders) != 0 || len(s.seen) != 1 {
		t.Errorf("folders %v", s.places.folders)
	}
	for i := range maxFiles {
		s.seen[fmt.Sprint(i)] = sighting{}
	}
	s.file(d.path("b"))
	if len(warned) != 2 || !strings.Contains(warned[0], "folders") || !strings.Contains(warned[1], "files") {
		t.Errorf("%q", warned)
	}
}
