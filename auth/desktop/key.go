package desktop

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	keySize = 32

	keyFileName  = "key"      // the key, in hexadecimal
	keyPlaceName = "key.json" // where the key is

	// probeTimeout bounds the trial of the keyring before the first record is written.
	probeTimeout = 2 * time.Second
	// keyringTimeout bounds a request to a keyring that has the key. The user may have
	// to unlock it.
	keyringTimeout = 15 * time.Second
)

// Places of a key, as [Store.KeyPlace] returns them.
const (
	InKeyring = "keyring" // the keyring of the desktop
	InFile    = "file"    // a file beside the records
	InOptions = "options" // StoreOptions.Key
)

// storeKey is the key of a folder.
type storeKey struct {
	id    string // the beginning of the key's SHA-256
	bytes []byte
}

// keyPlace is the content of the file keyPlaceName.
type keyPlace struct {
	Place string `json:"place"` // InKeyring or InFile
	ID    string `json:"id"`
}

// errKeyUnreachable is wrapped by errors of a [Store] if the key is in a keyring and the keyring
// does not give it, as in a session over SSH or in a service. Store.MoveKey in a desktop session
// helps.
var errKeyUnreachable = errors.New("the keyring does not give the key of the logins")

// unreachableKeyError is an [errKeyUnreachable] with the answer of the keyring.
type unreachableKeyError struct{ answer error }

func (e *unreachableKeyError) Error() string {
	return errKeyUnreachable.Error() + ": " + e.answer.Error()
}

func (e *unreachableKeyError) Unwrap() []error { return []error{errKeyUnreachable, e.answer} }

// Advice tells a user of dowel what to do.
func (e *unreachableKeyError) Advice() string {
	return "unlock the keyring; to use the logins without it, run this once in a session of your desktop: dowel auth key --move file"
}

func newStoreKey(text []byte) *storeKey {
	sum := sha256.Sum256(text)
	return &storeKey{id: hex.EncodeToString(sum[:4]), bytes: text}
}

// openKey returns the key. If there is none yet, it makes one if create is true, and fails
// otherwise.
func (s *Store) openKey(ctx context.Context, create bool) (*storeKey, error) {
	select {
	case s.keyLock <- struct{}{}:
		defer func() { <-s.keyLock }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.key != nil {
		return s.key, nil
	}
	key, err := s.findKey(ctx, create)
	if err == nil {
		s.key = key
	}
	return key, err
}

// findKey is openKey without the memory of the process. s.keyLock is held.
func (s *Store) findKey(ctx context.Context, create bool) (*storeKey, error) {
	if len(s.options.Key) > 0 {
		return newStoreKey(bytes.Clone(s.options.Key)), nil
	}
	place, err := s.readPlace()
	if err == nil {
		return s.readKey(ctx, place)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !create {
		return nil, fmt.Errorf("%s has logins and no %s, which says where their key is: restore it, or remove the logins", s.folder, keyPlaceName)
	}
	unlock, err := s.lockRecord(ctx, keyFileName)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if place, err = s.readPlace(); err == nil { // made by another process meanwhile
		return s.readKey(ctx, place)
	}
	return s.makeKey(ctx)
}

func (s *Store) readPlace() (keyPlace, error) {
	path := filepath.Join(s.folder, keyPlaceName)
	text, err := os.ReadFile(path)
	if err != nil {
		return keyPlace{}, err
	}
	var place keyPlace
	if err := json.Unmarshal(text, &place); err != nil || place.Place != InKeyring && place.Place != InFile || place.ID == "" {
		return keyPlace{}, fmt.Errorf("%s does not say where the key of the logins is: restore it, or remove the folder %s and log in again", path, s.folder)
	}
	return place, nil
}

func (s *Store) writePlace(place keyPlace) error {
	text, err := json.Marshal(place)
	if err != nil {
		return err
	}
	return writePrivateFile(filepath.Join(s.folder, keyPlaceName), append(text, '\n'))
}

// readKey reads the key from its place.
func (s *Store) readKey(ctx context.Context, place keyPlace) (*storeKey, error) {
	var text string
	var err error
	if place.Place == InKeyring {
		text, err = s.askKeyring(ctx, keyringTimeout, func() (string, error) { return s.keyring.Get(keyringService, keyringUser(place.ID)) })
		if err != nil {
			return nil, &unreachableKeyError{err}
		}
	} else {
		path := filepath.Join(s.folder, keyFileName)
		var content []byte
		if content, err = readPrivateFile(path); err != nil {
			return nil, fmt.Errorf("cannot read the key of the logins: %w", err)
		}
		text = string(content)
	}
	decoded, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(decoded) != keySize {
		return nil, fmt.Errorf("the key of the logins, in the %s, is damaged: restore it, or remove the folder %s and log in again", place.Place, s.folder)
	}
	key := newStoreKey(decoded)
	if key.id != place.ID {
		return nil, fmt.Errorf("the key in the %s is %s, and the key of the logins is %s: restore it, or remove the folder %s and log in again", place.Place, key.id, place.ID, s.folder)
	}
	return key, nil
}

// makeKey makes a key and chooses its place for good. The lock of the key is held.
func (s *Store) makeKey(ctx context.Context) (*storeKey, error) {
	b := make([]byte, keySize)
	_, _ = rand.Read(b) // never fails
	key := newStoreKey(b)
	place := keyPlace{Place: InFile, ID: key.id}
	if !s.options.NoKeyring && s.probeKeyring(ctx) == nil && s.storeKey(ctx, InKeyring, key) == nil {
		place.Place = InKeyring
	} else if err := s.storeKey(ctx, InFile, key); err != nil {
		return nil, fmt.Errorf("the key of the logins cannot be kept: %w", err)
	}
	if err := s.writePlace(place); err != nil {
		return nil, fmt.Errorf("the key of the logins cannot be kept: %w", err)
	}
	return key, nil
}

// storeKey puts a key into a place, and reads it back.
func (s *Store) storeKey(ctx context.Context, place string, key *storeKey) error {
	text := hex.EncodeToString(key.bytes)
	if place == InFile {
		if err := writePrivateFile(filepath.Join(s.folder, keyFileName), []byte(text+"\n")); err != nil {
			return err
		}
	} else if _, err := s.askKeyring(ctx, keyringTimeout, func() (string, error) {
		return "", s.keyring.Set(keyringService, keyringUser(key.id), text)
	}); err != nil {
		return err
	}
	_, err := s.readKey(ctx, keyPlace{Place: place, ID: key.id})
	return err
}

// KeyPlace returns where the key is: [InKeyring], [InFile] or [InOptions], or "" if there is no key
// yet. It does not ask the keyring.
func (s *Store) KeyPlace() (string, error) {
	if len(s.options.Key) > 0 {
		return InOptions, nil
	}
	place, err := s.readPlace()
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return place.Place, err
}

// MoveKey moves the key to [InKeyring] or [InFile]. Without a key, it makes one there. The logins
// stay as they are.
func (s *Store) MoveKey(ctx context.Context, to string) error {
	if to != InKeyring && to != InFile {
		return fmt.Errorf("the key cannot be moved to %q, want %s or %s", to, InFile, InKeyring)
	}
	if len(s.options.Key) > 0 {
		return errors.New("the key is given by the program's options, so it cannot be moved")
	}
	unlock, err := s.lockRecord(ctx, keyFileName)
	if err != nil {
		return err
	}
	defer unlock()
	place, err := s.readPlace()
	var key *storeKey
	switch {
	case errors.Is(err, fs.ErrNotExist):
		b := make([]byte, keySize)
		_, _ = rand.Read(b) // never fails
		key = newStoreKey(b)
	case err != nil:
		return err
	default:
		if key, err = s.readKey(ctx, place); err != nil {
			return err
		}
	}
	if place.Place == to {
		return nil
	}
	if err := s.storeKey(ctx, to, key); err != nil {
		return fmt.Errorf("the key was not moved: %w", err)
	}
	if err := s.writePlace(keyPlace{Place: to, ID: key.id}); err != nil {
		return fmt.Errorf("the key was not moved: %w", err)
	}
	return s.removeKey(ctx, place)
}

// removeKey removes the key from a place that it has left.
func (s *Store) removeKey(ctx context.Context, place keyPlace) error {
	switch place.Place {
	case InFile:
		return os.Remove(filepath.Join(s.folder, keyFileName))
	case InKeyring:
		_, err := s.askKeyring(ctx, keyringTimeout, func() (string, error) { return "", s.keyring.Delete(keyringService, keyringUser(place.ID)) })
		return err
	}
	return nil
}
