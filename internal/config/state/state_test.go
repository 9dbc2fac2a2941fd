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
	"github.com/dowel-mcp/dowel/internal/config"
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

// agreeTo returns an agreement to facts.
func agreeTo(facts ...string) config.Agreement {
	a := config.Agreement{Facts: append([]string{}, facts...), Digests: map[string]string{"kind stdio": "00"}}
	for _, fact := range facts {
		a.Digests[fact] = "d1"
	}
	return a
}

// An agreement of an older dowel is a hash and facts.
func TestOldTrust(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	put(t, path, `{"trust": {"/f": {"a": {"hash": "h", "facts": ["command npx"]}, "b": {"hash": ""}}}}`)
	s, w := open(t, path)
	if a, ok := s.Trusted("/f", "a"); !ok || a.Hash != "h" || a.Digests != nil || !slices.Equal(a.Facts, []string{"command npx"}) {
		t.Error(a, ok)
	}
	if _, ok := s.Trusted("/f", "b"); ok {
		t.Error("an empty entry is trust")
	}
	w.expect(t)
}

// All processes have the same key. The file that holds it is the user's alone.
func TestTrustKey(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	var all [8]string
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			other, err := state.Open(s.Path(), state.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			err = retryLocked(func() error {
				key, err := other.TrustKey()
				all[i] = string(key)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	for _, key := range all {
		if len(key) < 43 || key != all[0] {
			t.Errorf("%q and %q", key, all[0])
		}
	}
	if info, err := os.Stat(s.Path()); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

func TestTrust(t *testing.T) {
	s, _ := fresh(t)
	folder := t.TempDir()
	t.Chdir(folder)
	folder, err := os.Getwd()
	must(t, err)
	file := filepath.Join(folder, ".mcp.json")
	if _, ok := s.Trusted(file, "a"); ok {
		t.Error("trusted unasked")
	}
	must(t, s.Trust(".mcp.json", "a", agreeTo("command npx")))
	must(t, s.Trust(file, "b", agreeTo()))
	if a, ok := s.Trusted(file, "a"); !ok || !reflect.DeepEqual(a, agreeTo("command npx")) {
		t.Error(a, ok)
	}
	if _, ok := s.Trusted(filepath.Join(folder, "other"), "a"); ok {
		t.Error("another file is trusted")
	}
	wide := agreeTo("command uvx")
	wide.Folder = true
	must(t, s.Trust(file, "a", wide))
	if a, _ := s.Trusted("./.mcp.json", "a"); !reflect.DeepEqual(a, wide) {
		t.Error(a)
	}
	must(t, s.Distrust(file, "a"))
	if _, ok := s.Trusted(file, "a"); ok {
		t.Error("still trusted")
	}
	if _, ok := s.Trusted(file, "b"); !ok {
		t.Error("the other one is not trusted any more")
	}
	must(t, s.Distrust(file, "b"))
	if text := fileContent(t, s.Path()); strings.Contains(text, folder) {
		t.Errorf("a file of which nothing is trusted stays: %s", text)
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

func TestUnknownKeysStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	put(t, path, "\ufeff// by hand\n{\n\t\"later\": {\"x\": 1},\n\t\"servers\": {\n\t\t\"a\": {\"enabled\": true, \"color\": \"red\"}, // mine\n\t},\n\t\"trust\": null,\n}")
	s, w := open(t, path)
	if on, set := s.Enabled("a"); !on || !set {
		t.Error("it is on")
	}
	must(t, s.SetEnabled("a", false))
	must(t, s.Trust("/f", "a", agreeTo()))
	w.expect(t)
	text := fileContent(t, path)
	for _, want := range []string{"\ufeff// by hand\n", "\"later\": {\"x\": 1}", "\"a\": {\"enabled\": false, \"color\": \"red\"}, // mine"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

func TestOthersChangeIt(t *testing.T) {
	one, _ := fresh(t)
	two, _ := open(t, one.Path())
	must(t, one.SetEnabled("a", true))
	if on, _ := two.Enabled("a"); !on {
		t.Error("the other one does not see it")
	}
	must(t, two.SetEnabled("b", true))
	must(t, one.SetEnabled("c", true))
	for _, name := range []string{"a", "b", "c"} {
		if on, _ := two.Enabled(name); !on {
			t.Errorf("%s is lost", name)
		}
	}
	must(t, os.Remove(one.Path()))
	if _, set := one.Enabled("a"); set {
		t.Error("a removed file still has its content")
	}
	must(t, one.SetEnabled("d", true))
	if _, set := one.Enabled("a"); set {
		t.Error("a removed file has come back")
	}
}

func TestBroken(t *testing.T) {
	for _, broken := range []string{"{", `{"servers": []}`, `{"servers": {"a": {}, "a": {}}}`, "\x00\x00", `{"servers": {"a": {"enabled": "yes"}}}`} {
		t.Run(broken, func(t *testing.T) {
			s, w := fresh(t)
			must(t, s.SetEnabled("a", true))
			put(t, s.Path(), broken)
			for range 3 {
				if on, _ := s.Enabled("a"); !on {
					t.Error("the last valid content is lost")
				}
			}
			w.expect(t, "is not a valid state file")
			if fileContent(t, s.Path()) != broken {
				t.Error("reading changes the file")
			}
			must(t, s.SetEnabled("b", true))
			w.expect(t, "it is now "+s.Path()+".broken")
			if got := fileContent(t, s.Path()+".broken"); got != broken {
				t.Errorf("%q is kept", got)
			}
			other, w2 := open(t, s.Path())
			for _, name := range []string{"a", "b"} {
				if on, _ := other.Enabled(name); !on {
					t.Errorf("%s is lost", name)
				}
			}
			w2.expect(t)
		})
	}
}

func TestBrokenFromTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	for i, broken := range []string{"one", "one", "two", "three"} {
		put(t, path, broken)
		s, w := open(t, path)
		w.expect(t, "is not a valid state file")
		if _, set := s.Enabled("a"); set {
			t.Error("there is nothing to know")
		}
		must(t, s.SetEnabled("a", i%2 == 0))
		if on, set := s.Enabled("a"); on != (i%2 == 0) || !set {
			t.Error("not kept")
		}
	}
	for name, want := range map[string]string{".broken": "one", ".broken-2": "two", ".broken-3": "three"} {
		if got := fileContent(t, path+name); got != want {
			t.Errorf("%s has %q", name, got)
		}
	}
	put(t, path, "one")
	quiet, err := state.Open(path, state.Options{})
	must(t, err)
	must(t, quiet.SetEnabled("a", true))
	must(t, quiet.Disallow("a", "b"))
	put(t, path, " \n")
	must(t, quiet.SetEnabled("c", true))
	if _, set := quiet.Enabled("a"); set {
		t.Error("an emptied file still has its old content")
	}
	if on, _ := quiet.Enabled("c"); !on {
		t.Error("the change of an emptied file is lost")
	}
}

func TestCannotBeRead(t *testing.T) {
	folder := t.TempDir()
	if _, err := state.Open(folder, state.Options{}); err == nil || !strings.Contains(err.Error(), "cannot read") {
		t.Errorf("a folder: %v", err)
	}
	path := filepath.Join(folder, "state.json")
	s, w := open(t, path)
	must(t, s.SetEnabled("a", true))
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o700))
	for range 2 {
		if on, _ := s.Enabled("a"); !on {
			t.Error("the last valid content is lost")
		}
	}
	w.expect(t, "cannot read")
	if err := s.SetEnabled("b", true); err == nil || !strings.Contains(err.Error(), "cannot keep") {
		t.Errorf("written into a folder: %v", err)
	}
	if _, err := func() (string, error) {
		s, _ := open(t, filepath.Join(folder, "x"))
		must(t, os.Mkdir(s.Path(), 0o700))
		return s.Token()
	}(); err == nil {
		t.Error("a token that is not kept")
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

// Problems with the file are described for the user who has edited it.
func TestBrokenFileIsExplained(t *testing.T) {
	for text, want := range map[string]string{
		"{":                                      "the file ends too early",
		`{"servers": []}`:                        "/servers has a value of the wrong type",
		`{"servers": {"a": {}, "a": {}}}`:        "/servers/a occurs twice",
		`{"servers": {"a": {"enabled": "yes"}}}`: "/servers/a/enabled has a value of the wrong type",
		`[]`:                                     "the file has a value of the wrong type",
		`{"servers": {"a": {}} "gateway": {}}`:   "a comma is missing here",
	} {
		path := filepath.Join(t.TempDir(), "state.json")
		put(t, path, text)
		_, w := open(t, path)
		w.mu.Lock()
		got := strings.Join(w.list, "\n")
		w.mu.Unlock()
		if !strings.Contains(got, want) || strings.Contains(got, "json:") || strings.Contains(got, "unmarshal") || strings.Contains(got, "parsing") {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
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
