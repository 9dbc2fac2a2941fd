package state_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// warnings collects the warnings of a State.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) warn(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, err.Error())
}

// expect checks the warnings since the last call. Each must contain the text in its position.
func (w *warnings) expect(t *testing.T, says ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	ok := len(w.list) == len(says)
	for i := range min(len(says), len(w.list)) {
		ok = ok && strings.Contains(w.list[i], says[i])
	}
	if !ok {
		t.Errorf("warnings %q, want %q", w.list, says)
	}
	w.list = nil
}

func open(t *testing.T, path string) (*state.State, *warnings) {
	t.Helper()
	w := &warnings{}
	s, err := state.Open(path, state.Options{Warn: w.warn})
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

func fresh(t *testing.T) (*state.State, *warnings) {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "dowel", "state.json"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// retryLocked calls change until the file's lock is free. On a busy machine many processes that
// change one file may hold it for longer than a single change waits.
func retryLocked(change func() error) error {
	for {
		if err := change(); !errors.Is(err, atomicfile.ErrLocked) {
			return err
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func fileContent(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

func TestServers(t *testing.T) {
	s, w := fresh(t)
	if on, set := s.Enabled("a"); on || set {
		t.Error("the server counts as switched")
	}
	if _, err := os.Stat(s.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("reading makes no file:", err)
	}
	must(t, s.SetEnabled("a", false))
	must(t, s.SetEnabled("[b=c]", true))
	if on, set := s.Enabled("a"); on || !set {
		t.Error("it is off")
	}
	if on, set := s.Enabled("[b=c]"); !on || !set {
		t.Error("it is on")
	}
	must(t, s.Allow("a", "z", "x"))
	must(t, s.Allow("a", "x", "y"))
	must(t, s.Disallow("a", "z", "none"))
	if got := s.AlwaysAllow("a"); !slices.Equal(got, []string{"x", "y"}) {
		t.Error(got)
	}
	must(t, s.Disallow("a", "x", "y"))
	if got := s.AlwaysAllow("a"); len(got) > 0 {
		t.Error(got)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]fs.FileMode{s.Path(): 0o600, filepath.Dir(s.Path()): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has %v, %v", path, info.Mode(), err)
			}
		}
	}
	w.expect(t)
}

func TestNothingToChange(t *testing.T) {
	s, _ := fresh(t)
	must(t, s.Disallow("a", "x"))
	must(t, s.Distrust("f", "a"))
	if _, err := os.Stat(s.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("there was nothing to write:", err)
	}
}

func TestToken(t *testing.T) {
	s, _ := fresh(t)
	token, err := s.Token()
	must(t, err)
	if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(raw) != 32 {
		t.Errorf("%q: %d bytes, %v", token, len(raw), err)
	}
	again, err := s.Token()
	must(t, err)
	other, _ := open(t, s.Path())
	third, err := other.Token()
	must(t, err)
	if again != token || third != token {
		t.Errorf("%q, %q, %q", token, again, third)
	}
}

func TestTokensAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	tokens := make([]string, 8)
	var wg sync.WaitGroup
	for i := range tokens {
		s, _ := open(t, path)
		wg.Go(func() {
			if err := retryLocked(func() (err error) { tokens[i], err = s.Token(); return err }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if slices.Sort(tokens); tokens[0] == "" || tokens[0] != tokens[len(tokens)-1] {
		t.Errorf("%q", tokens)
	}
}

// TestProcesses changes one file from several processes at once.
func TestProcesses(t *testing.T) {
	if path := os.Getenv("STATE_TEST_PATH"); path != "" {
		s, err := state.Open(path, state.Options{})
		must(t, err)
		for i := range 10 {
			name := fmt.Sprintf("%s-%d", os.Getenv("STATE_TEST_NAME"), i)
			must(t, retryLocked(func() error { return s.Allow("a", name) }))
			must(t, retryLocked(func() error { return s.SetEnabled(name, true) }))
		}
		return
	}
	path := filepath.Join(t.TempDir(), "state.json")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
			cmd.Env = append(os.Environ(), "STATE_TEST_PATH="+path, fmt.Sprint("STATE_TEST_NAME=", i))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	s, w := open(t, path)
	if got := s.AlwaysAllow("a"); len(got) != 40 {
		t.Errorf("%d of 40: %v", len(got), got)
	}
	for i := range 40 {
		if on, _ := s.Enabled(fmt.Sprintf("%d-%d", i/10, i%10)); !on {
			t.Errorf("%d is lost", i)
		}
	}
	w.expect(t)
}

func TestPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the paths below are not absolute on Windows
	}
	for _, tt := range []struct {
		goos string
		env  map[string]string
		want string
	}{
		{"linux", map[string]string{"HOME": "/h"}, "/h/.local/state/dowel/state.json"},
		{"linux", map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/s"}, "/s/dowel/state.json"},
		{"linux", map[string]string{"HOME": "/h", "XDG_STATE_HOME": "relative"}, "/h/.local/state/dowel/state.json"},
		{"darwin", map[string]string{"HOME": "/h"}, "/h/Library/Application Support/dowel/state.json"},
		{"windows", map[string]string{"LocalAppData": "/l"}, "/l/dowel/state.json"},
		{"windows", nil, ""},
		{"linux", nil, ""},
	} {
		got, err := state.Path(tt.goos, func(name string) string { return tt.env[name] })
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s, %v: %q, %v", tt.goos, tt.env, got, err)
		}
	}
}

func TestGrants(t *testing.T) {
	s, _ := fresh(t)
	if got := s.Grants(); len(got) > 0 {
		t.Error(got)
	}
	must(t, s.Trust("/b", "x", agreeTo("command x")))
	must(t, s.Trust("/a", "y", agreeTo()))
	must(t, s.Trust("/a", "x", agreeTo()))
	names := func() (all []string) {
		for _, g := range s.Grants() {
			all = append(all, g.File+" "+g.Name+" "+strings.Join(g.Facts, ","))
		}
		return all
	}
	if got := names(); !slices.Equal(got, []string{"/a x ", "/a y ", "/b x command x"}) {
		t.Error(got)
	}
	must(t, s.Distrust("/a", "x"))
	must(t, s.Distrust("/b", "x"))
	if got := names(); !slices.Equal(got, []string{"/a y "}) {
		t.Error(got)
	}
}

func TestFavourites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	put(t, path, `{"favourites": ["b.y", "a.x"]}`)
	s, w := open(t, path)
	got := s.Favourites()
	if !slices.Equal(got, []string{"b.y", "a.x"}) {
		t.Error(got)
	}
	got[0] = "" // a copy
	if s.Favourites()[0] != "b.y" {
		t.Error("the result is not a copy")
	}
	w.expect(t)
}

func TestApprovals(t *testing.T) {
	s, w := fresh(t)
	if all := s.Approvals(); all != nil {
		t.Errorf("%v", all)
	}
	must(t, s.SetEnabled("off", false)) // no approval
	must(t, s.Allow("shell", "run"))
	must(t, s.Allow("files", "write", "edit", "write"))
	other, _ := open(t, s.Path())
	want := []state.Approval{{Server: "files", Tools: []string{"edit", "write"}}, {Server: "shell", Tools: []string{"run"}}}
	if got := other.Approvals(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	got := other.Approvals()
	got[0].Tools[0] = "delete" // the result is a copy
	if got := other.AlwaysAllow("files"); !reflect.DeepEqual(got, []string{"edit", "write"}) {
		t.Errorf("%v", got)
	}
	must(t, other.Disallow("files", "edit", "write"))
	must(t, s.Disallow("shell", "run"))
	if all := s.Approvals(); all != nil {
		t.Errorf("%v are left", all)
	}
	w.expect(t)
}
