// Package state keeps what a user toggles and no committed file should hold, in dowel's own file: which servers are on, which
// tools need no approval, which project files are trusted, the gateway's bearer token, and the favourite tools.
//
// Several processes may have the same file open: each change starts from what is in the file, with the others locked out,
// and each question is answered from it. Keys that this version does not know are kept. The file is JSON, and may be
// edited by hand:
//
//	{
//	  "servers": {"NAME": {"enabled": false, "alwaysAllow": ["TOOL"]}},
//	  "trust": {"/path/of/file": {"NAME": {"hash": "…", "facts": ["…"]}}},
//	  "gateway": {"token": "…"},
//	  "favourites": ["NAME.TOOL"]
//	}
//
// The file has the permissions 0600 and its folder, if it is made here, 0700. A file that cannot be read as that is not
// trusted with anything: questions are answered from what it said when this process could last read it, and the next
// change moves it aside, to NAME.broken, and starts from there. Both are told to Options.Warn.
package state

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// Path returns where the file is: dowel/state.json in $XDG_STATE_HOME, by default ~/.local/state; on macOS in ~/Library/Application
// Support, on Windows in %LocalAppData%. getenv is [os.Getenv], and goos runtime.GOOS.
func Path(goos string, getenv func(string) string) (string, error) {
	folder := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(folder) { // the rule of XDG: others are ignored
		var err error
		if folder, err = folderOf(goos, getenv); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "dowel", "state.json"), nil
}

func folderOf(goos string, getenv func(string) string) (string, error) {
	if goos == "windows" {
		if local := getenv("LocalAppData"); local != "" {
			return local, nil
		}
		return "", errors.New("there is no place for dowel's state: set LocalAppData or XDG_STATE_HOME")
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("there is no place for dowel's state: set HOME or XDG_STATE_HOME")
	}
	if goos == "darwin" {
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "state"), nil
}

// Options are for [Open]; the zero value is the default.
type Options struct {
	// Warn is told of what is wrong with the file, once each time it changes, by default nobody. It must not call the State.
	Warn func(error)
}

// State is an open file of state. It is safe for concurrent use, and need not be closed.
type State struct {
	path string
	warn func(error)

	mu    sync.Mutex
	info  fs.FileInfo // of the file that text was read from; nil if there was none
	text  []byte      // what was last read and is right
	known content     // what text says
	bad   string      // the hash of what was last warned of
}

// content is what this version knows of the file.
type content struct {
	Servers    map[string]server           `json:"servers"`
	Trust      map[string]map[string]trust `json:"trust"`
	Gateway    gateway                     `json:"gateway"`
	Favourites []string                    `json:"favourites"`
}

type server struct {
	Enabled     *bool    `json:"enabled"`
	AlwaysAllow []string `json:"alwaysAllow"`
}

type trust struct {
	Hash  string   `json:"hash"`
	Facts []string `json:"facts"`
}

type gateway struct {
	Token string `json:"token"`
}

// Open reads the file at path, which need not exist: the first change makes it. The error is one of reading; a file with
// wrong content is none.
func Open(path string, o Options) (*State, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &State{path: path, warn: o.Warn}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return nil, fmt.Errorf("cannot read dowel's state: %w", err)
	}
	return s, nil
}

// Path returns where the file is.
func (s *State) Path() string { return s.path }

// read returns what the file says now. What was last read stays true for a file that cannot be.
func (s *State) read() content {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		s.complain([]byte(err.Error()), fmt.Errorf("cannot read dowel's state: %w", err))
	}
	return s.known
}

// refresh reads the file if it is not the one that was last read; s.mu is held. Writing always makes another file.
func (s *State) refresh() error {
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		s.info, s.text, s.known = nil, nil, content{}
		return nil
	}
	if err != nil {
		return err
	}
	if s.info != nil && os.SameFile(s.info, info) && s.info.ModTime().Equal(info.ModTime()) && s.info.Size() == info.Size() {
		return nil
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	s.info = info
	if err := s.learn(text); err != nil {
		s.complain(text, fmt.Errorf("%s is not what dowel wrote (%w): what it said before counts, and the next change will move it aside", s.path, err))
	}
	return nil
}

// learn takes over what text says, if it is right; s.mu is held.
func (s *State) learn(text []byte) error {
	known, err := parse(text)
	if err == nil {
		s.text, s.known, s.bad = bytes.Clone(text), known, ""
	}
	return err
}

// complain warns of the same thing once; s.mu is held.
func (s *State) complain(about []byte, err error) {
	if h := atomicfile.Hash(about); h != s.bad {
		s.bad = h
		if s.warn != nil {
			s.warn(err)
		}
	}
}

func parse(text []byte) (content, error) {
	if len(bytes.TrimSpace(text)) == 0 { // made by hand, or what a full disk left
		return content{}, nil
	}
	plain, err := hujson.Standardize(append(bytes.TrimPrefix(bytes.Clone(text), []byte("\ufeff")), '\n'))
	if err != nil {
		return content{}, edit.ExplainJSON(err)
	}
	var c content
	err = json.Unmarshal(plain, &c) // of this library: a key that is there twice is an error here, and no surprise in a change
	return c, explain(err)
}

// explain says what is wrong in words for those who edit the file.
func explain(err error) error {
	var kind *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &kind):
		return fmt.Errorf("%s is of a kind that does not belong there", cmp.Or(string(kind.JSONPointer), "the whole"))
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("%s is there twice", syntax.JSONPointer)
	}
	return err
}

// change edits the file. edits is called with what it says, perhaps more than once.
func (s *State) change(edits func(now content) []change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var result []byte
	_, err := atomicfile.Update(s.path, func(old []byte, exists bool) ([]byte, error) {
		text, err := s.start(old, exists)
		if err != nil {
			return nil, err
		}
		for _, c := range edits(s.known) {
			if text, err = c.apply(text); err != nil {
				return nil, err
			}
		}
		if !exists && text == nil {
			return nil, nil
		}
		result = text
		return text, nil
	}, atomicfile.Options{Perm: 0o600, FolderPerm: 0o700})
	if err != nil {
		return fmt.Errorf("cannot keep dowel's state: %w", err)
	}
	return s.learn(result)
}

// start returns the text that a change starts from: the file's, or what was last right where that is broken.
func (s *State) start(old []byte, exists bool) ([]byte, error) {
	if !exists {
		s.text, s.known = nil, content{}
		return nil, nil
	}
	broken := s.learn(old)
	if broken == nil {
		return s.text, nil
	}
	aside, err := setAside(s.path, old)
	if err != nil {
		return nil, fmt.Errorf("%w; and it cannot be moved aside: %w", broken, err)
	}
	if s.warn != nil {
		s.warn(fmt.Errorf("%s was not what dowel wrote (%w): it is now %s", s.path, broken, aside))
	}
	return s.text, nil
}

// setAside keeps a broken file's content beside it.
func setAside(path string, text []byte) (string, error) {
	aside := path + ".broken"
	for n := 2; ; n++ {
		kept, err := os.ReadFile(aside)
		if err == nil && bytes.Equal(kept, text) {
			return aside, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			_, err := atomicfile.Update(aside, func([]byte, bool) ([]byte, error) { return text, nil }, atomicfile.Options{Perm: 0o600})
			return aside, err
		}
		aside = fmt.Sprintf("%s.broken-%d", path, n)
	}
}

// change sets or removes one value of the file.
type change struct {
	path  []string
	value any // nil removes
}

func (c change) apply(text []byte) ([]byte, error) {
	if c.value == nil {
		return edit.Remove(text, edit.JSON, c.path)
	}
	// A name of a server may look like an entry of a list: objects first.
	for n := 1; n < len(c.path); n++ {
		v, ok, err := edit.Lookup(text, edit.JSON, c.path[:n])
		if err == nil && (!ok || v == nil) {
			text, err = edit.Set(text, edit.JSON, c.path[:n], edit.Object{})
		}
		if err != nil {
			return nil, err
		}
	}
	return edit.Set(text, edit.JSON, c.path, c.value)
}
