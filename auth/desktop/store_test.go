package desktop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/mcptest"
	zalando "github.com/zalando/go-keyring"
)

const server = "https://mcp.example/mcp"

func TestMain(m *testing.M) {
	if folder := os.Getenv("TEST_STORE_FOLDER"); folder != "" {
		os.Exit(runStoreChild(folder))
	}
	if folder := os.Getenv("TEST_KEYRING_FOLDER"); folder != "" {
		os.Exit(runKeyringChild(folder))
	}
	if folder := os.Getenv("TEST_REQUEST_FOLDER"); folder != "" {
		os.Exit(runRequestChild(folder, os.Getenv("TEST_REQUEST_ADDRESS"), os.Getenv("TEST_REQUEST_DIES") != ""))
	}
	mcptest.Main(m)
}

// memoryKeyring is a keyring in memory.
type memoryKeyring struct {
	mu      sync.Mutex
	entries map[string]string
	err     error         // of all requests
	hangs   chan struct{} // requests wait until it is closed; nil answers at once
}

func newMemoryKeyring() *memoryKeyring { return &memoryKeyring{entries: map[string]string{}} }

func (k *memoryKeyring) enter() error {
	if k.hangs != nil {
		<-k.hangs
	}
	return k.err
}

func (k *memoryKeyring) Get(service, user string) (string, error) {
	if err := k.enter(); err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	text, ok := k.entries[service+"/"+user]
	if !ok {
		return "", zalando.ErrNotFound
	}
	return text, nil
}

func (k *memoryKeyring) Set(service, user, secret string) error {
	if err := k.enter(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries[service+"/"+user] = secret
	return nil
}

func (k *memoryKeyring) Delete(service, user string) error {
	if err := k.enter(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.entries, service+"/"+user)
	return nil
}

// openTestStore opens a Store with a keyring of the test. A nil ring refuses everything.
func openTestStore(t *testing.T, folder string, ring *memoryKeyring, o *StoreOptions) *Store {
	t.Helper()
	s, err := OpenStore(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	if ring == nil {
		ring = &memoryKeyring{err: errors.New("no keyring here")}
	}
	s.keyring = ring
	return s
}

// save replaces the access token of the record.
func save(t *testing.T, s *Store, token string) error {
	t.Helper()
	return s.Update(t.Context(), server, func(r *auth.Record) (*auth.Record, error) {
		if r == nil {
			r = &auth.Record{Server: server}
		}
		r.AccessToken = token
		return r, nil
	})
}

// mustSave saves a token and fails the test if it cannot.
func mustSave(t *testing.T, s *Store, token string) {
	t.Helper()
	if err := save(t, s, token); err != nil {
		t.Fatal(err)
	}
}

// checkToken fails the test unless the record has a token; "" wants no record.
func checkToken(t *testing.T, s *Store, want string) {
	t.Helper()
	r, err := s.Load(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case r == nil && want != "", r != nil && r.AccessToken != want:
		t.Errorf("the record is %+v, want the token %q", r, want)
	}
}

func TestRecordIsEncryptedAndPrivate(t *testing.T) {
	t.Parallel()
	for _, ring := range []*memoryKeyring{nil, newMemoryKeyring()} {
		folder := filepath.Join(t.TempDir(), "auth")
		s := openTestStore(t, folder, ring, nil)
		checkToken(t, s, "")
		mustSave(t, s, "canary-access")
		mustSave(t, s, "canary-access")
		want := map[bool]string{true: InKeyring, false: InFile}[ring != nil]
		if place, err := s.KeyPlace(); place != want || err != nil {
			t.Errorf("the key is in %q, %v, want %q", place, err, want)
		}
		again := openTestStore(t, folder, ring, nil)
		checkToken(t, again, "canary-access")
		if r, err := again.Load(t.Context(), server); err != nil || r.Generation != 2 {
			t.Errorf("the record is %+v, %v, want generation 2", r, err)
		}
		if all, err := again.Records(t.Context()); err != nil || len(all) != 1 || all[0].Server != server {
			t.Errorf("the records are %v, %v", all, err)
		}
		checkFiles(t, folder)
		if err := again.Update(t.Context(), server, func(*auth.Record) (*auth.Record, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		checkToken(t, s, "")
	}
}

// checkFiles checks that only the user can read the files of a folder, and that none has a secret.
func checkFiles(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, want 0600", e.Name(), info.Mode())
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("canary")) || bytes.Contains(text, []byte("mcp.example")) {
			t.Errorf("%s shows the record: %s", e.Name(), text)
		}
	}
	if info, err := os.Stat(folder); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has the mode %v, %v, want 0700", info.Mode(), err)
	}
}

func TestDamagedRecordIsSetAside(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var warnings []error
	s := openTestStore(t, folder, nil, &StoreOptions{Warn: func(err error) { warnings = append(warnings, err) }})
	for i, damage := range []func([]byte) []byte{
		func([]byte) []byte { return []byte("{not JSON") },
		func(text []byte) []byte { return text[:len(text)/2] },
		func(text []byte) []byte { return bytes.Replace(text, []byte(`"data":"`), []byte(`"data":"AAAA`), 1) },
		func([]byte) []byte { return nil },
	} {
		mustSave(t, s, "before")
		path := s.path(recordID(server))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := damage(text)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		checkToken(t, s, "")
		aside, err := filepath.Glob(path + "*" + badSuffix)
		if err != nil || len(aside) != i+1 || len(warnings) != i+1 {
			t.Fatalf("%d files were set aside with %d warnings, want %d", len(aside), len(warnings), i+1)
		}
		if !strings.Contains(warnings[i].Error(), "log in again") {
			t.Errorf("the warning is %v", warnings[i])
		}
		mustSave(t, s, "after")
		checkToken(t, s, "after")
	}
}

func TestRecordCountsUnderItsOwnNameOnly(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, t.TempDir(), nil, nil)
	mustSave(t, s, "one")
	if err := os.Rename(s.path(recordID(server)), s.path(recordID("https://attacker.example/"))); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Load(t.Context(), "https://attacker.example/"); r != nil || err != nil {
		t.Errorf("another server got %+v, %v", r, err)
	}
}

func TestFileOfNewerVersionStays(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, t.TempDir(), nil, nil)
	mustSave(t, s, "one")
	path := s.path(recordID(server))
	if err := os.WriteFile(path, []byte(`{"version":2,"key":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), server); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestFileThatOthersCanReadIsRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // files have no such mode there
	}
	s := openTestStore(t, t.TempDir(), nil, nil)
	mustSave(t, s, "one")
	for _, path := range []string{s.path(recordID(server)), filepath.Join(s.folder, keyFileName)} {
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		s.key = nil
		if _, err := s.Load(t.Context(), server); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("the error is %v", err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	checkToken(t, s, "one")
}

// A folder that cannot be written must be noticed before a refresh token is used.
func TestChangeIsNotMadeIfItCannotBeKept(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, t.TempDir(), nil, nil)
	mustSave(t, s, "one")
	try := filepath.Join(s.folder, "."+recordID(server)+".try")
	if err := os.Mkdir(try, 0o700); err != nil { // a mode would not stop root
		t.Fatal(err)
	}
	err := s.Update(t.Context(), server, func(*auth.Record) (*auth.Record, error) {
		t.Error("the change was made")
		return nil, nil
	})
	if err == nil || !strings.Contains(err.Error(), "cannot be kept") {
		t.Errorf("the error is %v", err)
	}
}

func TestHangingKeyringMeansKeyFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring := newMemoryKeyring()
		ring.hangs = make(chan struct{})
		s := openTestStore(t, t.TempDir(), ring, nil)
		key, err := s.makeKey(t.Context())
		if err != nil || key == nil {
			t.Fatal(key, err)
		}
		if place, err := s.KeyPlace(); place != InFile || err != nil {
			t.Errorf("the key is in %q, %v, want a file", place, err)
		}
		close(ring.hangs)
	})
}

func TestUnreachableKeyringIsAnError(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ring := newMemoryKeyring()
	mustSave(t, openTestStore(t, folder, ring, nil), "one")
	remote := openTestStore(t, folder, nil, nil)
	if _, err := remote.Load(t.Context(), server); !errors.Is(err, errKeyUnreachable) {
		t.Errorf("Load returned %v", err)
	}
	if err := save(t, remote, "two"); !errors.Is(err, errKeyUnreachable) {
		t.Errorf("Update returned %v", err)
	}
	if err := remote.MoveKey(t.Context(), InFile); !errors.Is(err, errKeyUnreachable) {
		t.Errorf("MoveKey returned %v", err)
	}
	if err := openTestStore(t, folder, ring, nil).MoveKey(t.Context(), InFile); err != nil {
		t.Fatal(err)
	}
	if len(ring.entries) != 0 {
		t.Errorf("the keyring still has %v", ring.entries)
	}
	checkToken(t, remote, "one")
	back := openTestStore(t, folder, ring, nil)
	if err := back.MoveKey(t.Context(), InKeyring); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, keyFileName)); err == nil {
		t.Error("the key file is still there")
	}
	checkToken(t, openTestStore(t, folder, ring, nil), "one")
}

func TestGivenKey(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := OpenStore(folder, &StoreOptions{Key: []byte("short")}); err == nil {
		t.Error("a short key was accepted")
	}
	key := bytes.Repeat([]byte{7}, keySize)
	s := openTestStore(t, folder, nil, &StoreOptions{Key: key})
	mustSave(t, s, "one")
	if _, err := os.Stat(filepath.Join(folder, keyFileName)); err == nil {
		t.Error("the key was kept")
	}
	checkToken(t, openTestStore(t, folder, nil, &StoreOptions{Key: key}), "one")
	other := openTestStore(t, folder, nil, &StoreOptions{Key: bytes.Repeat([]byte{8}, keySize)})
	if _, err := other.Load(t.Context(), server); err == nil || !strings.Contains(err.Error(), "encrypted with the key") {
		t.Errorf("another key gave %v", err)
	}
	checkToken(t, s, "one") // the record was not set aside
}

func TestMissingKeyIsAnError(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, t.TempDir(), nil, nil)
	mustSave(t, s, "one")
	for _, name := range []string{keyFileName, keyPlaceName} {
		if err := os.Remove(filepath.Join(s.folder, name)); err != nil {
			t.Fatal(err)
		}
		s.key = nil
		if _, err := s.Load(t.Context(), server); err == nil {
			t.Errorf("no error without %s", name)
		}
		if _, err := os.Stat(s.path(recordID(server))); err != nil {
			t.Error(err)
		}
	}
}

func TestLockEndsWithContext(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s, other := openTestStore(t, folder, nil, nil), openTestStore(t, folder, nil, nil)
	mustSave(t, s, "one")
	err := s.Update(t.Context(), server, func(r *auth.Record) (*auth.Record, error) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, waiting := range []*Store{s, other} { // the lock of the process, and of the file
			err := waiting.Update(ctx, server, func(*auth.Record) (*auth.Record, error) {
				t.Error("the lock was not held")
				return nil, nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
		}
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestErrorsShowNoSecret(t *testing.T) {
	t.Parallel()
	key := newStoreKey(bytes.Repeat([]byte{1}, keySize))
	gcm, err := key.cipher()
	if err != nil {
		t.Fatal(err)
	}
	e := envelope{Version: 1, Key: key.id, Nonce: make([]byte, gcm.NonceSize())}
	e.Data = gcm.Seal(nil, e.Nonce, []byte(`"canary-secret"`), sealedFor("id"))
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parseEnvelope(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.decryptRecord(key, "id"); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("the error is %v", err)
	}
}

// Requests to a keyring that hangs wait for it together: they do not leave a goroutine each.
func TestHangingKeyringIsAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openTestStore(t, t.TempDir(), nil, nil)
		hangs := make(chan struct{})
		defer close(hangs)
		var asked atomic.Int32
		for range 3 {
			_, err := s.askKeyring(t.Context(), time.Second, func() (string, error) {
				asked.Add(1)
				<-hangs
				return "", nil
			})
			if err == nil {
				t.Error("no error")
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}
