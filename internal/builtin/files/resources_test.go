package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// forRevisions runs a test with a client of each revision.
func forRevisions(t *testing.T, files map[string]string, test func(d *desk)) {
	for _, revision := range mcp.Revisions() {
		t.Run(string(revision), func(t *testing.T) {
			t.Parallel()
			test(newDeskOf(t, files, Options{Server: server.Options{PageSize: 2}}, client.Options{Wire: client.Wire{Revision: revision}}))
		})
	}
}

func TestResources(t *testing.T) {
	files := map[string]string{"a.md": "# A\n", "b c%20.png": png, "dir/sub/x": "", "dir/y": "", "ü": "gr\xfcn\n", "z": "zz"}
	forRevisions(t, files, func(d *desk) {
		d.must(os.Symlink("a.md", d.path("good")))
		d.must(os.Symlink("/etc/passwd", d.path("evil")))
		listed, err := client.All(d.client.Resources(d.Context()))
		d.must(err)
		var got []string
		for _, r := range listed {
			result, err := d.client.ReadResource(d.Context(), r.URI)
			if err != nil {
				d.Errorf("%s: %v", r.URI, err)
				continue
			}
			c := result.Contents[0]
			size := int64(-1)
			if r.Size != nil {
				size = *r.Size
			}
			got = append(got, fmt.Sprintf("%s %s %d: %q", r.Name, r.MIMEType, size, c.Text+string(c.Blob)))
			if c.URI != r.URI || c.MIMEType != r.MIMEType || r.URI != URI(d.path(r.Name)) {
				d.Errorf("%s: read %s, %s", r.URI, c.URI, c.MIMEType)
			}
		}
		want := []string{
			`a.md text/markdown 4: "# A\n"`, fmt.Sprintf("b c%%20.png image/png %d: %q", len(png), png), `dir inode/directory -1: "sub/\ny\n"`,
			`good text/plain 4: "# A\n"`, `z text/plain 2: "zz"`, `ü text/plain 5: "gr\xfcn\n"`,
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			d.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		templates, err := client.All(d.client.ResourceTemplates(d.Context()))
		if err != nil || len(templates) != 1 || templates[0].URITemplate != Template {
			d.Errorf("templates: %v, %v", templates, err)
		}
		for _, uri := range []string{uriOf(d.path("none")), "file:///", "file:///etc/passwd", uriOf(d.path("evil")), uriOf(d.dir) + "/..%2Fx", "file://host/x", "other:x", uriOf(d.path("z")) + "%00"} {
			_, err := d.client.ReadResource(d.Context(), uri)
			wantError(d, err, "resource not found")
		}
		d.must(os.Truncate(d.path("z"), MaxResource+1))
		_, err = d.client.ReadResource(d.Context(), uriOf(d.path("z")))
		wantError(d, err, "has 8.0 MiB, but a resource has at most 8.0 MiB: use the tool read, which returns it in parts")
	})
}

func TestCompletesPaths(t *testing.T) {
	d := newDesk(t, map[string]string{"alpha/x": "", "alpine": "", "beta": "", "a 100%20": ""})
	dir := variableOf(d.dir)
	for typed, want := range map[string][]string{
		"":                   {dir + "/"},
		dir[:4]:              {dir + "/"},
		dir:                  {dir + "/"},
		dir + "/":            {dir + "/a 100%2520", dir + "/alpha/", dir + "/alpine", dir + "/beta"},
		dir + "/al":          {dir + "/alpha/", dir + "/alpine"},
		dir + "/alpha/":      {dir + "/alpha/x"},
		dir + "/a%20":        {dir + "/a 100%2520"},
		dir + "/none/":       nil,
		"etc/":               nil,
		dir + "/../":         nil,
		dir + "/alpha/../al": {dir + "/alpha/../alpha/", dir + "/alpha/../alpine"},
	} {
		got, err := d.client.Complete(t.Context(), mcp.ResourceRef(Template), "path", typed, nil)
		if err != nil || !slices.Equal(got.Values, want) {
			t.Errorf("%q: got %q, %v", typed, got.Values, err)
		}
	}
	// Expanding the template with the suggestion gives the URI of the file.
	template, err := uritemplate.Parse(Template)
	d.must(err)
	uri, err := template.Expand(uritemplate.Values{"path": uritemplate.Text(dir + "/a 100%2520")})
	if path, ok := pathOf(uri); err != nil || !ok || path != d.path("a 100%20") {
		t.Errorf("%s is %s, %v", uri, path, err)
	}
}

// follower is a subscription that counts its changes.
type follower struct {
	*client.Watch
	changes chan string
}

func (d *desk) follow(f mcp.SubscriptionFilter) *follower {
	d.Helper()
	w, err := d.client.Watch(d.Context(), f)
	d.must(err)
	fo := &follower{w, make(chan string, 1000)}
	go func() {
		defer close(fo.changes)
		for change, err := range w.Changes() {
			if err != nil {
				return
			}
			fo.changes <- change.Method + " " + change.URI
		}
	}()
	d.Cleanup(func() {
		w.Close()
		for range fo.changes {
		}
	})
	return fo
}

// wants waits for a change; others that come before it are passed over.
func (fo *follower) wants(t testing.TB, what, change string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case got := <-fo.changes:
			if got == change {
				return
			}
		case <-limit:
			t.Fatalf("%s: no %s", what, change)
		}
	}
}

// wantsNothing waits a moment, in which nothing must come.
func (fo *follower) wantsNothing(t testing.TB, what string) {
	t.Helper()
	select {
	case got := <-fo.changes:
		t.Errorf("%s: %s", what, got)
	case <-time.After(300 * time.Millisecond):
	}
}

const (
	updated = mcp.NotificationResourceUpdated + " "
	relist  = mcp.NotificationResourcesChanged + " "
)

func TestFollowsFiles(t *testing.T) {
	files := map[string]string{"a b.log": "one\n", "dir/x": "", "still": "s"}
	forRevisions(t, files, func(d *desk) {
		log, later, dir, still := uriOf(d.path("a b.log")), uriOf(d.path("new/later")), uriOf(d.path("dir")), uriOf(d.path("still"))
		other := strings.ReplaceAll(uriOf(d.dir), "-", "%2D") + "/a%20b.lo%67" // another spelling of the first
		fo := d.follow(mcp.SubscriptionFilter{ResourceSubscriptions: []string{log, later, dir, still, other}})
		for i := range 3 {
			f, err := os.OpenFile(d.path("a b.log"), os.O_APPEND|os.O_WRONLY, 0)
			d.must(err)
			_, err = fmt.Fprintf(f, "line %d\n", i)
			d.must(err)
			d.must(f.Close())
			fo.wants(d, "a line is appended", updated+log)
		}
		d.put("a b.log", "rotated\n")
		fo.wants(d, "a spelling of its own", updated+other)
		d.must(os.Remove(d.path("a b.log")))
		fo.wants(d, "it is removed", updated+log)
		d.put("new/later", "x")
		fo.wants(d, "it comes into being, with its folder", updated+later)
		d.steps([]step{{"write", args{"path": "new/later", "content": "y"}, "replaced"}})
		fo.wants(d, "it is replaced", updated+later)
		d.put("dir/y", "")
		fo.wants(d, "a folder gets a file", updated+dir)
		d.must(os.Chtimes(d.path("still"), time.Now(), time.Now().Add(time.Hour)))
		for len(fo.changes) > 0 {
			<-fo.changes
		}
		fo.wantsNothing(d, "a file is touched")
	})
}

func TestFollowsTheList(t *testing.T) {
	forRevisions(t, map[string]string{"a": ""}, func(d *desk) {
		fo := d.follow(mcp.SubscriptionFilter{ResourcesListChanged: true})
		d.put("b", "")
		fo.wants(d, "a file is made", relist)
		d.put("sub/c", "")
		fo.wants(d, "a folder is made", relist)
	})
}

// The list has only the files at the top of a root, so a file in a folder does not change it.
func TestListIgnoresDeeperFiles(t *testing.T) {
	forRevisions(t, map[string]string{"a": "", "sub/c": ""}, func(d *desk) {
		fo := d.follow(mcp.SubscriptionFilter{ResourcesListChanged: true})
		d.put("sub/d", "")
		fo.wantsNothing(d, "a file deeper down is made")
		d.put("b", "")
		fo.wants(d, "a file is made", relist)
	})
}

// A link leads to a file in another folder, from which the system gives notice.
func TestFollowsLinks(t *testing.T) {
	d := newDeskOf(t, map[string]string{"logs/1": "a\n"}, Options{Poll: time.Hour}, client.Options{})
	d.must(os.Symlink("logs/1", d.path("current")))
	fo := d.follow(mcp.SubscriptionFilter{ResourceSubscriptions: []string{uriOf(d.path("current"))}})
	d.put("logs/1", "a\nb\n")
	fo.wants(t, "the target changes", updated+uriOf(d.path("current")))
}

// Files are watched exactly while a client is subscribed to them.
func TestWatchesWhatIsSubscribedTo(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "", "b": ""})
	w := d.server.watcher
	count := func() (int, bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.watched), w.loop != nil
	}
	wait := func(want int) {
		t.Helper()
		polltest.Until(t, fmt.Sprint(want, " are watched"), func() bool {
			n, runs := count()
			return n == want && runs == (want > 0)
		})
	}
	wait(0)
	a, b := uriOf(d.path("a")), uriOf(d.path("b"))
	first := d.follow(mcp.SubscriptionFilter{ResourceSubscriptions: []string{a, b, "file:///etc/passwd", "other:x", uriOf(filepath.Dir(d.dir))}})
	if got := first.Acknowledged().ResourceSubscriptions; !slices.Equal(got, []string{a, b}) {
		t.Errorf("agreed to %q", got)
	}
	wait(2)
	second := d.follow(mcp.SubscriptionFilter{ResourceSubscriptions: []string{b}, ResourcesListChanged: true})
	wait(3)
	d.must(first.Close())
	wait(2)
	d.put("b", "x")
	second.wants(t, "it is changed", updated+b)
	d.must(second.Close())
	wait(0)
	third := d.follow(mcp.SubscriptionFilter{ResourceSubscriptions: []string{a}})
	d.put("a", "x")
	third.wants(t, "it is watched again", updated+a)
	wait(1)
}

func TestWatchesSoManyFiles(t *testing.T) {
	d := newDesk(t, nil)
	var uris []string
	for i := range MaxWatched + 10 {
		uris = append(uris, uriOf(d.path(fmt.Sprintf("f%d", i))))
	}
	fo := d.follow(mcp.SubscriptionFilter{ResourceSubscriptions: uris})
	if got := fo.Acknowledged().ResourceSubscriptions; !slices.Equal(got, uris[:MaxWatched]) {
		t.Errorf("agreed to %d", len(got))
	}
	d.put(fmt.Sprintf("f%d", MaxWatched-1), "")
	fo.wants(t, "the last of them", updated+uris[MaxWatched-1])
}

// Without the system's notices, files are looked at every now and then.
func TestFollowsByLooking(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "x", "big": strings.Repeat("x", maxHashed+1)})
	told := make(chan target, 10)
	w := newWatcher(10*time.Millisecond, func(t target) { told <- t })
	defer w.closeWatcher()
	root := d.server.roots[0]
	small, big := target{place{root, "a"}, "a"}, target{place{root, "big"}, "big"}
	w.watchTarget(small)
	w.watchTarget(big)
	w.mu.Lock()
	w.loop.removeFolder(d.dir)
	clear(w.folders)
	w.mu.Unlock()
	d.put("new", "y")
	d.must(os.Rename(d.path("new"), d.path("a"))) // not in place: a look could see the file while it is empty
	if got := <-told; got != small {
		t.Errorf("told of %v", got)
	}
	f, err := os.OpenFile(d.path("big"), os.O_APPEND|os.O_WRONLY, 0)
	d.must(err)
	_, err = f.WriteString("more")
	d.must(err)
	d.must(f.Close())
	if got := <-told; got != big {
		t.Errorf("told of %v", got)
	}
}
