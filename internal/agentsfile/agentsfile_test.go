package agentsfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config/state"
)

// testFolders are a user's folder, a repository with a project in it, and an empty state.
type testFolders struct {
	t                      *testing.T
	user, root, repository string
	store                  *state.State
}

func newTestFolders(t *testing.T) *testFolders {
	base := t.TempDir()
	f := &testFolders{t: t, user: filepath.Join(base, "user"), root: filepath.Join(base, "outer"), repository: filepath.Join(base, "outer", "repository")}
	for _, folder := range []string{f.user, filepath.Join(f.repository, ".git"), f.project()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if f.store, err = state.Open(filepath.Join(base, "state.json"), state.Options{Warn: func(err error) { t.Error(err) }}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *testFolders) project() string { return filepath.Join(f.repository, "sub", "project") }

func (f *testFolders) write(folder, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(folder, Name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// find describes the files: their texts, and whether they are agreed to or have changed.
func (f *testFolders) find() string {
	var all []string
	for _, file := range Find(f.user, f.project(), f.store) {
		text := file.Text
		if file.Err != nil {
			text = file.Err.Error()
		}
		all = append(all, fmt.Sprintf("%s %t %t", text, file.Agreed, file.Changed))
	}
	return strings.Join(all, ", ")
}

func (f *testFolders) check(want string) {
	f.t.Helper()
	if got := f.find(); got != want {
		f.t.Errorf("found %s, want %s", got, want)
	}
}

// The user's file counts at once, the files of the repository count after the user agreed.
func TestFind(t *testing.T) {
	f := newTestFolders(t)
	f.check("")
	f.write(f.root, "of another repository")
	f.write(f.user, "mine\n")
	f.write(f.repository, "theirs")
	f.write(f.project(), "nearer")
	f.check("mine true false, theirs false false, nearer false false")
	all := Find(f.user, f.project(), f.store)
	if prompt := Prompt(all); !strings.Contains(prompt, "The user's instructions, from "+all[0].Path+":\n\nmine") || strings.Contains(prompt, "theirs") {
		t.Error(prompt)
	}
	for i, always := range map[int]bool{1: false, 2: true} {
		if err := Agree(f.store, all[i], always); err != nil {
			t.Fatal(err)
		}
	}
	f.check("mine true false, theirs true false, nearer true false")
	f.write(f.repository, "theirs, changed")
	f.write(f.project(), "nearer, changed")
	f.check("mine true false, theirs, changed false true, nearer, changed true false")
	if err := Revoke(f.store, all[2].Path); err != nil {
		t.Fatal(err)
	}
	f.check("mine true false, theirs, changed false true, nearer, changed false false")
}

// A file that cannot be used is reported, and is never given to a model.
func TestUnusableFiles(t *testing.T) {
	f := newTestFolders(t)
	f.write(f.user, strings.Repeat("x", MaxSize+1))
	if err := os.Mkdir(filepath.Join(f.project(), Name), 0o700); err != nil {
		t.Fatal(err)
	}
	f.write(f.repository, " \n")
	f.check("it is larger than 64 KiB false false, it is not a file false false")
	if prompt := Prompt(Find(f.user, f.project(), f.store)); prompt != "" {
		t.Error(prompt)
	}
}

// A project's file that becomes a link to another file of the user is not given to a model, also if
// the user agreed to whatever it becomes. A link within the project is.
func TestLinkOutOfTheProject(t *testing.T) {
	f := newTestFolders(t)
	f.write(f.repository, "theirs")
	if err := Agree(f.store, Find("", f.project(), f.store)[0], true); err != nil {
		t.Fatal(err)
	}
	path, secret := filepath.Join(f.repository, Name), filepath.Join(f.root, "id_ed25519")
	if err := errors.Join(os.WriteFile(secret, []byte("a key"), 0o600), os.Remove(path), os.Symlink(secret, path)); err != nil {
		t.Fatal(err)
	}
	f.check("it is a link to a file outside the project false false")
	inside := filepath.Join(f.repository, "README.md")
	if err := errors.Join(os.WriteFile(inside, []byte("a text"), 0o600), os.Remove(path), os.Symlink(inside, path)); err != nil {
		t.Fatal(err)
	}
	f.check("a text true false")
}
