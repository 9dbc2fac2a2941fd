//go:build unix

package hub_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// awaitWaiting waits until an upstream plans no further attempt, and returns its state.
func awaitWaiting(t *testing.T, u *hub.Upstream) hub.State {
	t.Helper()
	polltest.Until(t, "the upstream plans no further attempt", func() bool {
		s := u.State()
		return (s.Status == hub.Failed || s.Status == hub.NeedsAuthorization) && s.Next.IsZero()
	})
	return u.State()
}

// countStarts returns how many attempts an upstream has begun.
func countStarts(u *hub.Upstream) (n int) {
	for _, e := range u.History() {
		if e.Kind == hub.StateChanged && e.State.Status == hub.Starting {
			n++
		}
	}
	return n
}

// A server that cannot start before something changes is not tried again until then, and its state
// names the change. Applying an equal definition, as after the file was saved, tries once more.
func TestNoAttemptBeforeAChange(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(web.Close)
	missing := filepath.Join(t.TempDir(), "prog")
	for name, tt := range map[string]struct {
		target any
		cause  string
	}{
		"program":  {stdio.Command{Path: missing}, "it waits for the program " + missing + ", or a change of its entry"},
		"folder":   {stdio.Command{Path: "/bin/sh", Dir: missing}, "it waits for the folder " + missing + ", or a change of its entry"},
		"variable": {stdio.Command{Path: "/bin/sh", Args: []string{"-c", "echo 'Error: HUB_TEST_KEY is not set' >&2; exit 1"}}, "it waits for HUB_TEST_KEY in its entry"},
		"login":    {web.URL, "it waits for a login, or a change of its entry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hub.New(&hub.Options{Logger: quiet, MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond})
			defer h.Close()
			d := hub.Definition{Name: "s", Target: tt.target, Fingerprint: "1"}
			h.Apply([]hub.Definition{d}, "the test begins")
			u := h.Upstream("s")
			if s := awaitWaiting(t, u); s.Cause != tt.cause || s.Attempt != 2 || s.Diagnosis == nil {
				t.Errorf("the state is %+v, want the cause %q", s, tt.cause)
			}
			starts := countStarts(u)
			h.Apply([]hub.Definition{d}, "the file was saved")
			if awaitWaiting(t, u); countStarts(u) != starts+1 {
				t.Errorf("%d attempts after an equal definition, %d before; want one more", countStarts(u), starts)
			}
		})
	}
}

// In an hour, no attempt follows the first two.
func TestWaitingForAProgramCostsNoAttempts(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "prog")
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(&hub.Options{Logger: quiet})
		defer h.Close()
		h.Apply([]hub.Definition{{Name: "s", Target: stdio.Command{Path: missing}}}, "the test begins")
		time.Sleep(time.Hour) // in the bubble's time
		if n := countStarts(h.Upstream("s")); n != 2 {
			t.Errorf("%d attempts in an hour, want 2", n)
		}
	})
}

// The server starts soon after its program has appeared.
func TestProgramAppears(t *testing.T) {
	t.Parallel()
	c := child("mortal")
	program := c.Path
	c.Path = filepath.Join(t.TempDir(), "prog")
	h := hub.New(&hub.Options{Logger: quiet, MinBackoff: time.Millisecond})
	defer h.Close()
	h.Apply([]hub.Definition{{Name: "s", Target: c}}, "the test begins")
	u := h.Upstream("s")
	awaitWaiting(t, u)
	if err := os.Symlink(program, c.Path); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the server is ready", func() bool { return u.State().Status == hub.Ready })
	found := false
	for _, e := range u.History() {
		found = found || strings.Contains(e.State.Cause, "its program or folder has changed")
	}
	if !found {
		t.Error("no state says why the server was tried again")
	}
}
