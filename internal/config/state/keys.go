package state

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// keyLife is the time for which a key seals. The first start after it adds a new one.
	keyLife = 90 * 24 * time.Hour
	// keyRetention is the time for which a key still opens after another one has taken its place.
	// It is longer than the life of nearly all sessions and tasks.
	keyRetention = 30 * 24 * time.Hour
)

// keyFile is the content of the file keys.json. The first key seals; all open.
type keyFile struct {
	Keys []storedKey `json:"keys"`
}

type storedKey struct {
	Secret  []byte    `json:"secret"` // base64 in the file
	Created time.Time `json:"created"`
}

// SealingKeys returns the keys that seal the ids of sessions and tasks and the states of clients.
// They are in the file keys.json beside the state file, so that what they sealed opens after a
// restart. The first call creates the file; of several processes that do so at once, all get the
// same keys. A key seals for 90 days, and opens for 30 more. renew adds a new key at once.
//
// A file that is broken stays as it is, and is an error.
func (s *State) SealingKeys(renew bool) (*mcp.Keys, error) {
	path := filepath.Join(filepath.Dir(s.path), "keys.json")
	now := time.Now().UTC().Truncate(time.Second)
	var current []storedKey
	change := func(old []byte, exists bool) ([]byte, error) {
		f, err := parseKeys(old, exists)
		if err != nil {
			return nil, err
		}
		if current = updateKeys(f.Keys, now, renew); isSameKeys(current, f.Keys) {
			return old, nil
		}
		return json.Marshal(keyFile{current}, jsontext.WithIndent("  "))
	}
	content, err := os.ReadFile(path)
	if exists := err == nil; exists || errors.Is(err, fs.ErrNotExist) {
		var next []byte
		next, err = change(content, exists)
		if err == nil && (!exists || !bytes.Equal(next, content)) { // a file that stays needs no right to write
			_, err = atomicfile.Update(path, change, atomicfile.Options{Perm: 0o600, FolderPerm: 0o700})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the keys of dowel's sessions and tasks cannot be kept: %w", err)
	}
	secrets := make([][]byte, 0, len(current))
	for _, k := range current {
		secrets = append(secrets, k.Secret)
	}
	return mcp.NewKeys(secrets...)
}

// isSameKeys reports whether two lists have the same keys.
func isSameKeys(a, b []storedKey) bool {
	return slices.EqualFunc(a, b, func(a, b storedKey) bool { return bytes.Equal(a.Secret, b.Secret) })
}

// parseKeys returns the content of the file of keys.
func parseKeys(content []byte, exists bool) (f keyFile, err error) {
	if !exists {
		return f, nil
	}
	if err = json.Unmarshal(content, &f); err == nil && len(f.Keys) == 0 {
		err = errors.New("it has no keys")
	}
	for _, k := range f.Keys {
		if len(k.Secret) < 16 {
			err = errors.New("a key has less than 16 bytes")
		}
	}
	if err != nil {
		return f, fmt.Errorf("keys.json in dowel's state folder is broken: %w: remove the file, and dowel makes new keys", err)
	}
	return f, nil
}

// updateKeys drops the keys that need not open any more, and adds a new one if it is
// time for it.
func updateKeys(keys []storedKey, now time.Time, renew bool) []storedKey {
	if len(keys) == 0 || renew || now.Sub(keys[0].Created) > keyLife {
		secret := make([]byte, 32)
		rand.Read(secret) // never fails
		keys = append([]storedKey{{secret, now}}, keys...)
	}
	for i := 1; i < len(keys); i++ {
		if now.Sub(keys[i-1].Created) > keyRetention { // it has not sealed since then
			return keys[:i]
		}
	}
	return keys
}
