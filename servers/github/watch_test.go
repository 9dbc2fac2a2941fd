package github

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

const guideURI = "github:///o/r/docs/a%20guide.md"

// changingFile answers as GitHub does for one file, which changes.
type changingFile struct {
	mu          sync.Mutex
	version     int // 0 means that the file does not exist
	token       int // temporary, in the answer for a private file
	hasNoTags   bool
	limit, left int // of the rate, which begins anew after an hour
	begun       time.Time

	full, unchanged int // answers with and without a body
}

func (f *changingFile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since := time.Since(f.begun); since >= time.Hour {
		f.begun, f.left = f.begun.Add(since.Truncate(time.Hour)), f.limit
	}
	w.Header().Set("X-RateLimit-Limit", fmt.Sprint(f.limit))
	w.Header().Set("X-RateLimit-Reset", fmt.Sprint(f.begun.Add(time.Hour).Unix()))
	tag := fmt.Sprintf(`W/"%d-%d"`, f.version, f.token)
	isKnown := r.Header.Get("If-None-Match") == tag
	if !isKnown {
		f.left--
	}
	w.Header().Set("X-RateLimit-Remaining", fmt.Sprint(f.left))
	if !f.hasNoTags {
		w.Header().Set("ETag", tag)
	}
	switch {
	case r.URL.Path != "/repos/o/r/contents/docs/a guide.md", f.version == 0:
		w.Header().Del("ETag")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"Not Found","documentation_url":"https://docs.github.com/rest"}`)
	case isKnown && !f.hasNoTags:
		f.unchanged++
		w.WriteHeader(http.StatusNotModified)
	default:
		f.full++
		fmt.Fprintf(w, `{"type":"file","encoding":"","sha":"a%d","download_url":"https://raw.invalid/?token=%d"}`, f.version, f.token)
	}
}

func (f *changingFile) setVersion(version int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version = version
}

func (f *changingFile) renewToken() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token++
}

// wantAnswers checks the numbers of answers since the last check.
func (f *changingFile) wantAnswers(t *testing.T, full, unchanged int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full != full || f.unchanged != unchanged {
		t.Errorf("%d full answers and %d without a body, want %d and %d", f.full, f.unchanged, full, unchanged)
	}
	f.full, f.unchanged = 0, 0
}

// dialInBubble serves the API over pipes, which a bubble needs.
func dialInBubble(t *testing.T, api http.Handler, revision mcp.Revision) *client.Client {
	t.Helper()
	s, err := New(Options{URL: "http://github.invalid", Token: "secret", Poll: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	pipes := pipeListener{accepted: make(chan net.Conn), closed: make(chan struct{})}
	s.transport.Proxy, s.transport.DialContext = nil, pipes.dial
	web := &http.Server{Handler: api}
	go func() { _ = web.Serve(pipes) }()
	c, err := client.Dial(t.Context(), s, &client.Options{Wire: client.Wire{Revision: revision, Tap: mcptest.ClientTap(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close(); web.Close() })
	return c
}

type pipeListener struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (l pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	l.accepted <- there
	return here, nil
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error   { close(l.closed); return nil }
func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// notices counts the changes of resources that a client hears of.
type notices struct {
	mu  sync.Mutex
	all []string
}

func (n *notices) add(change client.Change, _ error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if change.URI != "" {
		n.all = append(n.all, change.URI)
	}
}

// pass lets a time pass and checks how often the client has heard of a change since the last check.
func (n *notices) pass(t *testing.T, d time.Duration, want int) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.all, slices.Repeat([]string{guideURI}, want)) {
		t.Errorf("the client has heard of %q, want %d changes", n.all, want)
	}
	n.all = nil
}

func watchGuide(t *testing.T, c *client.Client) (*client.Watch, *notices) {
	t.Helper()
	heard := &notices{}
	watch, err := c.OnChange(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{guideURI}}, heard.add)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return watch, heard
}

// Subscribers hear of a file that changes, comes and goes. While it stays the same, the API sends
// no body; without subscribers, it gets no request.
func TestFileChanges(t *testing.T) {
	for _, revision := range []mcp.Revision{mcp.Revisions()[0], mcp.Revision20251125} {
		synctest.Test(t, func(t *testing.T) {
			file := &changingFile{version: 1, limit: 5000, left: 5000, begun: time.Now()}
			c := dialInBubble(t, file, revision)
			synctest.Wait()
			file.wantAnswers(t, 0, 0)
			watch, heard := watchGuide(t, c)
			file.wantAnswers(t, 1, 0)
			heard.pass(t, 3*time.Minute+time.Second, 0)
			file.wantAnswers(t, 0, 3)
			for _, version := range []int{2, 0, 3} {
				file.setVersion(version)
				heard.pass(t, 2*time.Minute, 1)
			}
			watch.Close()
			synctest.Wait()
			file.wantAnswers(t, 2, 2)
			file.setVersion(4)
			heard.pass(t, time.Hour, 0)
			file.wantAnswers(t, 0, 0)
		})
	}
}

// Another temporary token in the answer is no change of the file.
func TestFileChangesOfPrivateFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &changingFile{version: 1, limit: 5000, left: 5000, begun: time.Now()}
		_, heard := watchGuide(t, dialInBubble(t, file, mcp.Revisions()[0]))
		heard.pass(t, time.Minute+time.Second, 0)
		file.wantAnswers(t, 1, 1)
		file.renewToken()
		heard.pass(t, 3*time.Minute, 0)
		file.wantAnswers(t, 1, 2) // the new ETag counts from then on
		file.setVersion(2)
		heard.pass(t, time.Minute, 1)
	})
}

// An API without ETags is compared by its answers.
func TestFileChangesWithoutTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &changingFile{version: 1, hasNoTags: true, limit: 5000, left: 5000, begun: time.Now()}
		_, heard := watchGuide(t, dialInBubble(t, file, mcp.Revisions()[0]))
		heard.pass(t, 2*time.Minute+time.Second, 0)
		file.setVersion(2)
		heard.pass(t, 2*time.Minute, 1)
		file.wantAnswers(t, 5, 0)
	})
}

// The polling leaves half of the rate limit to the tools, and continues when the limit begins anew.
func TestFileChangesSpareTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &changingFile{version: 1, hasNoTags: true, limit: 60, left: 60, begun: time.Now()}
		_, heard := watchGuide(t, dialInBubble(t, file, mcp.Revisions()[0]))
		heard.pass(t, 59*time.Minute+time.Second, 0)
		file.wantAnswers(t, 30, 0)
		file.setVersion(2)
		heard.pass(t, 2*time.Minute, 1)
	})
}

// A subscription has the files of a repository only.
func TestWatchedURIs(t *testing.T) {
	for uri, want := range map[string]string{
		guideURI:                       "repos/o/r/contents/docs/a%20guide.md",
		"github:///o/r/a/b":            "repos/o/r/contents/a/b",
		"github:///o/r":                "",
		"github:///o/r/":               "",
		"github:///../r/x":             "",
		"github:///o/r/../../user":     "",
		"github:///o/r/%2e%2e/x":       "",
		"github:///o/..%2F..%2Fuser/x": "",
		"github:///o/r/x?ref=main":     "",
		"github://host/o/r/x":          "",
		"https:///o/r/x":               "",
		"\x00":                         "",
	} {
		if got, err := contentsPath(uri); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", uri, got, err, want)
		}
	}
}
