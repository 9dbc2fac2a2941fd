package state_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config/state"
)

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
