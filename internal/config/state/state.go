// Package state stores the user's choices that belong in no committed file: which servers are on,
// which tools need no approval, which project files are trusted, the gateway's bearer token, and
// the favourite tools.
//
// Several processes may use the same file at once. Each change locks the file and starts from its
// current content, and each query reads it if it has changed. Unknown keys are kept. The file is
// JSON with comments and may be edited by hand:
//
//	{
//	  "servers": {"NAME": {"enabled": false, "alwaysAllow": ["TOOL"], "trustAnnotations": true}},
//	  "trust": {"/path/of/file": {"NAME": {"facts": ["…"], "digests": {"…": "…"}}}},
//	  "trustKey": "…",
//	  "gateway": {"token": "…"},
//	  "favourites": ["NAME.TOOL"]
//	}
//
// The file has permissions 0600. If Open creates its folder, the folder has 0700. If the file is
// broken, queries return the content that this process last read, and the next change moves the
// broken file to NAME.broken and starts from that content. Options.Warn receives both events.
//
//	s, err := state.Open(path, state.Options{})
//	err = s.SetEnabled("github", false)
//	on, set := s.Enabled("github")
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
	"syscall"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// Path returns the path of the state file: dowel/state.json in $XDG_STATE_HOME, by default
// ~/.local/state; on macOS in ~/Library/Application Support, on Windows in %LocalAppData%. getenv
// is [os.Getenv] and goos is runtime.GOOS, except in tests.
func Path(goos string, getenv func(string) string) (string, error) {
	folder := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(folder) { // the XDG specification ignores relative paths
		var err error
		if folder, err = baseFolder(goos, getenv); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "dowel", "state.json"), nil
}

// baseFolder returns the system's folder for state files.
func baseFolder(goos string, getenv func(string) string) (string, error) {
	if goos == "windows" {
		if local := getenv("LocalAppData"); local != "" {
			return local, nil
		}
		return "", errors.New("cannot find a folder for dowel's state: set LocalAppData or XDG_STATE_HOME")
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("cannot find a folder for dowel's state: set HOME or XDG_STATE_HOME")
	}
	if goos == "darwin" {
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "state"), nil
}

// Options are the options of [Open]. The zero value selects the defaults.
type Options struct {
	// Warn receives each problem with the file once. It may be nil and must not call the State.
	Warn func(error)
}

// State is an open state file. It is safe for concurrent use and need not be closed.
type State struct {
	path string
	warn func(error)

	mu         sync.Mutex
	info       fs.FileInfo // of the file from which text was read; nil if the file was missing
	text       []byte      // the last valid content
	content    fileContent // text, parsed
	warnedHash string      // the hash of the last problem that was reported
}

// Folder returns the path of a folder beside the state file. It need not exist.
func (s *State) Folder(name string) string { return filepath.Join(filepath.Dir(s.path), name) }

// fileContent is the part of the file that this version understands.
type fileContent struct {
	Servers    map[string]server                      `json:"servers"`
	Trust      map[string]map[string]config.Agreement `json:"trust"`
	TrustKey   string                                 `json:"trustKey"`
	Gateway    gateway                                `json:"gateway"`
	Favourites []string                               `json:"favourites"`
}

type server struct {
	Enabled     *bool    `json:"enabled"`
	AlwaysAllow []string `json:"alwaysAllow"`
	// TrustAnnotations is set for the user's own servers alone.
	TrustAnnotations bool `json:"trustAnnotations"`
}

type gateway struct {
	Token string `json:"token"`
}

// Open opens the file at path. The file need not exist: the first change creates it. Open returns
// an error if the file cannot be read, but only warns if its content is invalid.
func Open(path string, o Options) (*State, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &State{path: path, warn: o.Warn}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refreshFile(); err != nil {
		return nil, fmt.Errorf("cannot read dowel's state: %w", err)
	}
	return s, nil
}

// Path returns the path of the file.
func (s *State) Path() string { return s.path }

// Exists reports whether the file exists.
func (s *State) Exists() bool {
	_, err := os.Stat(s.path)
	return err == nil
}

// current returns the file's content. If the file cannot be read, it returns the last valid
// content.
func (s *State) current() fileContent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refreshFile(); err != nil {
		s.warnOnce([]byte(err.Error()), fmt.Errorf("cannot read dowel's state: %w", err))
	}
	return s.content
}

// refreshFile reads the file if it has changed since the last read. Every write creates a new file,
// so the file's identity and times are sufficient evidence. s.mu must be held.
func (s *State) refreshFile() error {
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		s.info, s.text, s.content = nil, nil, fileContent{}
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
	if err := s.setContent(text); err != nil {
		s.warnOnce(text, fmt.Errorf("%s is not a valid state file (%w): its previous content stays in force, and the next change will move the file aside", s.path, err))
	}
	return nil
}

// setContent takes over text if it is valid. s.mu must be held.
func (s *State) setContent(text []byte) error {
	known, err := parseContent(text)
	if err == nil {
		s.text, s.content, s.warnedHash = bytes.Clone(text), known, ""
	}
	return err
}

// warnOnce reports a problem unless it was the last one reported. s.mu must be held.
func (s *State) warnOnce(about []byte, err error) {
	if h := atomicfile.Hash(about); h != s.warnedHash {
		s.warnedHash = h
		if s.warn != nil {
			s.warn(err)
		}
	}
}

// parseContent parses the file's text. An empty text is an empty state.
func parseContent(text []byte) (fileContent, error) {
	if len(bytes.TrimSpace(text)) == 0 { // created by hand, or truncated by a full disk
		return fileContent{}, nil
	}
	plain, err := hujson.Standardize(append(bytes.TrimPrefix(bytes.Clone(text), []byte("\ufeff")), '\n'))
	if err != nil {
		return fileContent{}, edit.ExplainJSON(err)
	}
	var c fileContent
	err = json.Unmarshal(plain, &c) // this library rejects duplicate keys, which an edit could not handle
	return c, explainError(err)
}

// explainError rewrites a parse error for the user who edited the file.
func explainError(err error) error {
	var kind *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &kind):
		return fmt.Errorf("%s has a value of the wrong type", cmp.Or(string(kind.JSONPointer), "the file"))
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("%s occurs twice", syntax.JSONPointer)
	}
	return err
}

// updateFile edits the file under its lock. It calls edits with the current content, perhaps more
// than once.
func (s *State) updateFile(edits func(now fileContent) []valueChange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var result []byte
	_, err := atomicfile.Update(s.path, func(old []byte, exists bool) ([]byte, error) {
		text, err := s.baseText(old, exists)
		if err != nil {
			return nil, err
		}
		for _, c := range edits(s.content) {
			if text, err = c.applyTo(text); err != nil {
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
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("cannot keep dowel's state: %w: set XDG_STATE_HOME to a folder that dowel can write to", err)
		}
		return fmt.Errorf("cannot keep dowel's state: %w", err)
	}
	return s.setContent(result)
}

// baseText returns the text from which a change starts: the file's text, or the last valid text if
// the file is broken. It moves a broken file aside.
func (s *State) baseText(old []byte, exists bool) ([]byte, error) {
	if !exists {
		s.text, s.content = nil, fileContent{}
		return nil, nil
	}
	broken := s.setContent(old)
	if broken == nil {
		return s.text, nil
	}
	aside, err := setAside(s.path, old)
	if err != nil {
		return nil, fmt.Errorf("%w; and it cannot be moved aside: %w", broken, err)
	}
	if s.warn != nil {
		s.warn(fmt.Errorf("%s was not a valid state file (%w): it is now %s", s.path, broken, aside))
	}
	return s.text, nil
}

// setAside stores a broken file's content beside the file and returns the path of the copy.
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

// valueChange sets or removes one value of the file.
type valueChange struct {
	path  []string
	value any // nil removes the value
}

// applyTo returns text with the change applied.
func (c valueChange) applyTo(text []byte) ([]byte, error) {
	if c.value == nil {
		return edit.Remove(text, edit.JSON, c.path)
	}
	// A server name may look like a list selector, so the objects are created first.
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
