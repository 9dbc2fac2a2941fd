package desktop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/atomicfile"
)

// recordSuffix ends the name of a record's file, badSuffix of one that was set aside.
const (
	recordSuffix = ".login"
	badSuffix    = ".bad"
)

// Store is an [auth.Store] of encrypted files in a folder. Any number of processes may use the
// same folder. A file that cannot be read is renamed to NAME.bad, and the record is missing then.
type Store struct {
	folder  string
	options StoreOptions
	keyring keyring
	asking  chan struct{} // holds one element while the keyring is asked

	mu      sync.Mutex
	locks   map[string]processLock // by id of the record; guarded by mu
	keyLock chan struct{}          // held to read and to set key
	key     *storeKey              // nil until it is needed
}

// StoreOptions are the options of [OpenStore]. The zero value selects the defaults.
type StoreOptions struct {
	// Key is a key of 32 bytes that replaces the keyring and the key file, such as a secret of a
	// container. The Store does not keep it.
	Key []byte
	// NoKeyring puts a new key into a file without asking the keyring. It has no effect on a key
	// that exists.
	NoKeyring bool
	// Warn is called with the error of a file that was set aside. nil ignores it.
	Warn func(error)
}

// OpenStore returns the Store in a folder, which need not exist. A nil o means the defaults. It
// fails if the key of the options has a wrong length, and touches neither files nor the keyring.
func OpenStore(folder string, o *StoreOptions) (*Store, error) {
	s := &Store{folder: folder, keyring: systemKeyring{}, locks: map[string]processLock{}, keyLock: make(chan struct{}, 1), asking: make(chan struct{}, 1)}
	if o != nil {
		s.options = *o
	}
	if n := len(s.options.Key); n != 0 && n != keySize {
		return nil, fmt.Errorf("the key has %d bytes, want %d", n, keySize)
	}
	return s, nil
}

// recordID returns the name of the file of a record without its suffix. It tells nothing about the
// server.
func recordID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

func (s *Store) path(id string) string { return filepath.Join(s.folder, id+recordSuffix) }

// Load implements [auth.Store].
func (s *Store) Load(ctx context.Context, key string) (*auth.Record, error) {
	id := recordID(key)
	r, err := s.readRecord(ctx, id)
	if _, damaged := errors.AsType[*damagedError](err); !damaged {
		return r, err
	}
	unlock, err := s.lockRecord(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return s.readOrSetAside(ctx, id)
}

// Update implements [auth.Store]. The new record is on the disk when Update returns.
func (s *Store) Update(ctx context.Context, key string, change func(*auth.Record) (*auth.Record, error)) error {
	id := recordID(key)
	unlock, err := s.lockRecord(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := s.readOrSetAside(ctx, id)
	if err != nil {
		return err
	}
	// A record that could not be written after the change would lose a refresh token.
	key32, err := s.openKey(ctx, true)
	if err != nil {
		return err
	}
	if err := s.checkWritable(id); err != nil {
		return err
	}
	var generation uint64
	if old != nil {
		generation = old.Generation
	}
	next, err := change(old)
	if err != nil {
		return err
	}
	if next == nil {
		return s.removeRecord(id)
	}
	changed := *next
	changed.Generation = generation + 1
	return s.writeRecord(key32, id, &changed)
}

// Records returns all records. Their order is not defined.
func (s *Store) Records(ctx context.Context) ([]*auth.Record, error) {
	names, err := filepath.Glob(filepath.Join(s.folder, "*"+recordSuffix))
	if err != nil {
		return nil, err
	}
	var all []*auth.Record
	for _, name := range names {
		r, err := s.readRecord(ctx, strings.TrimSuffix(filepath.Base(name), recordSuffix))
		if err != nil {
			return nil, err
		}
		if r != nil {
			all = append(all, r)
		}
	}
	return all, nil
}

// damagedError is an error of a record that no key can read.
type damagedError struct {
	path string
	err  error
}

func (e *damagedError) Error() string {
	return "cannot read the login in " + e.path + ": " + e.err.Error()
}

func (e *damagedError) Unwrap() error { return e.err }

// readRecord returns a record, or nil if its file does not exist.
func (s *Store) readRecord(ctx context.Context, id string) (*auth.Record, error) {
	path := s.path(id)
	text, err := readPrivateFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	box, err := parseEnvelope(text)
	if err != nil {
		return nil, &damagedError{path, err}
	}
	if box.Version != envelopeVersion {
		return nil, fmt.Errorf("the login in %s has the format %d, and this program knows %d: use a newer version", path, box.Version, envelopeVersion)
	}
	key, err := s.openKey(ctx, false)
	if err != nil {
		return nil, err
	}
	if box.Key != key.id {
		return nil, fmt.Errorf("the login in %s was encrypted with the key %s, and the key in use is %s: use that key, or remove the file and log in again", path, box.Key, key.id)
	}
	r, err := box.decryptRecord(key, id)
	if err != nil {
		return nil, &damagedError{path, err}
	}
	return r, nil
}

// readOrSetAside is readRecord for a caller that holds the record's lock. It sets a damaged file
// aside.
func (s *Store) readOrSetAside(ctx context.Context, id string) (*auth.Record, error) {
	r, err := s.readRecord(ctx, id)
	damaged, isDamaged := errors.AsType[*damagedError](err)
	if !isDamaged {
		return r, err
	}
	aside := damaged.path + badSuffix
	if _, err := os.Lstat(aside); err == nil {
		aside = fmt.Sprintf("%s.%s%s", damaged.path, time.Now().UTC().Format("20060102-150405.000000000"), badSuffix)
	}
	if err := os.Rename(damaged.path, aside); err != nil {
		return nil, errors.Join(damaged, err)
	}
	if s.options.Warn != nil {
		s.options.Warn(fmt.Errorf("%w; it is kept as %s, and you must log in again", damaged, filepath.Base(aside)))
	}
	return nil, nil
}

func (s *Store) writeRecord(key *storeKey, id string, r *auth.Record) error {
	text, err := sealRecord(key, id, r)
	if err != nil {
		return err
	}
	return writePrivateFile(s.path(id), text)
}

func (s *Store) removeRecord(id string) error {
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkWritable fails if a record cannot be written. A disk that becomes full meanwhile is not
// noticed.
func (s *Store) checkWritable(id string) error {
	path := filepath.Join(s.folder, "."+id+".try")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the login cannot be kept: %w", err)
	}
	_ = f.Close()
	_ = os.Remove(path)
	return nil
}

// writePrivateFile replaces a file that only its user can read. The content is on the disk when it
// returns.
func writePrivateFile(path string, text []byte) error {
	_, err := atomicfile.Update(path, func([]byte, bool) ([]byte, error) { return text, nil }, atomicfile.Options{Perm: 0o600, FolderPerm: 0o700})
	return err
}

// readPrivateFile reads a file, and refuses one that other users can read.
func readPrivateFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has the mode %04o, so other users may have read or changed it: log out and in again if they did, then run: chmod 600 %s", path, mode, path)
	}
	return os.ReadFile(path)
}
