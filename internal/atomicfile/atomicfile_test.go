package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// replaceWith returns a change to fixed content.
func replaceWith(content string) func([]byte, bool) ([]byte, error) {
	return func([]byte, bool) ([]byte, error) { return []byte(content), nil }
}

func readContent(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeContent(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustUpdate(t *testing.T, path, content string, o Options) Result {
	t.Helper()
	r, err := Update(path, replaceWith(content), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// listNames lists a folder, to show files that an update left behind.
func listNames(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

func fileMode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestNewFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "f.json")
	r, err := Update(path, func(old []byte, exists bool) ([]byte, error) {
		if old != nil || exists {
			t.Errorf("a file that is not there has %q", old)
		}
		return []byte("new"), nil
	}, Options{Perm: 0o600, FolderPerm: 0o700, Backup: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Path != path || !r.Changed || r.Hash != Hash([]byte("new")) || r.Backup != "" {
		t.Errorf("%+v", r)
	}
	if readContent(t, path) != "new" || listNames(t, dir) != "f.json" {
		t.Errorf("%q in %s", readContent(t, path), listNames(t, dir))
	}
	if runtime.GOOS != "windows" {
		if m := fileMode(t, path); m != 0o600 {
			t.Errorf("the file has %v", m)
		}
		if m := fileMode(t, filepath.Dir(dir)); m.Perm() != 0o700 {
			t.Errorf("the folder has %v", m)
		}
	}
}

func TestNothingToDo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	none := func([]byte, bool) ([]byte, error) { return nil, nil }
	if r, err := Update(path, none, Options{}); err != nil || r.Changed || r.Hash != "" || listNames(t, dir) != "" {
		t.Errorf("%+v %v, the folder has %s", r, err, listNames(t, dir))
	}
	writeContent(t, path, "same")
	before, _ := os.Stat(path)
	r := mustUpdate(t, path, "same", Options{Backup: true})
	after, _ := os.Stat(path)
	if r.Changed || r.Hash != Hash([]byte("same")) || r.Backup != "" || !os.SameFile(before, after) || listNames(t, dir) != "f" {
		t.Errorf("%+v, the folder has %s", r, listNames(t, dir))
	}
	wrong := errors.New("wrong")
	if _, err := Update(path, func([]byte, bool) ([]byte, error) { return nil, wrong }, Options{}); err != wrong {
		t.Errorf("the error became %v", err)
	}
	if r := mustUpdate(t, path, "", Options{}); !r.Changed || readContent(t, path) != "" {
		t.Errorf("a file can be emptied: %+v, %q", r, readContent(t, path))
	}
}

func TestPermissionsStay(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no such permissions
	}
	path := filepath.Join(t.TempDir(), "f")
	writeContent(t, path, "old")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	r := mustUpdate(t, path, "new", Options{Perm: 0o600, Backup: true})
	if m := fileMode(t, path); m != 0o640 {
		t.Errorf("the file has %v", m)
	}
	if m := fileMode(t, r.Backup); m != 0o640 {
		t.Errorf("the copy has %v", m)
	}
}

func TestSymbolicLinksStay(t *testing.T) {
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	link := func(target string, at ...string) string {
		t.Helper()
		path := filepath.Join(append([]string{dir}, at...)...)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, folder := range []string{"real/deep", "links"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "real", "f")
	writeContent(t, file, "old")
	inner := link("../real/f", "links", "inner")
	outer := link("links/inner", "outer")
	folder := link("real/deep", "folder")
	up := link("../f", "real", "deep", "up")
	for i, path := range []string{inner, outer, up, filepath.Join(folder, "up"), file} {
		want := "new " + strconv.Itoa(i)
		if r := mustUpdate(t, path, want, Options{}); r.Path != file {
			t.Errorf("%s leads to %s", path, r.Path)
		}
		if readContent(t, file) != want {
			t.Errorf("%s: the file has %q", path, readContent(t, file))
		}
		if path != file && fileMode(t, path)&fs.ModeSymlink == 0 && filepath.Dir(path) != folder {
			t.Errorf("%s is no longer a link", path)
		}
	}
	dangling := link("missing/g", "dangling")
	if r := mustUpdate(t, dangling, "made", Options{}); r.Path != filepath.Join(dir, "missing", "g") || fileMode(t, dangling)&fs.ModeSymlink == 0 {
		t.Errorf("%+v", r)
	}
	circle := link("circle", "circle")
	if _, err := Update(circle, replaceWith("x"), Options{}); err == nil || !strings.Contains(err.Error(), "too many symbolic links") {
		t.Errorf("a circle: %v", err)
	}
}

func TestBackup(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	writeContent(t, path, "0")
	o := Options{Backup: true}
	first := mustUpdate(t, path, "1", o).Backup
	if first != path+".bak" || readContent(t, first) != "0" {
		t.Errorf("the first copy is %s with %q", first, readContent(t, first))
	}
	writeContent(t, path, "0")
	if again := mustUpdate(t, path, "1", o).Backup; again != first {
		t.Errorf("the same content is kept twice: %s", again)
	}
	seen := map[string]string{first: "0"}
	for i := 1; i < 4; i++ {
		r := mustUpdate(t, path, strconv.Itoa(i+1), o)
		if seen[r.Backup] != "" {
			t.Errorf("%s was overwritten", r.Backup)
		}
		seen[r.Backup] = strconv.Itoa(i)
	}
	for path, want := range seen {
		if readContent(t, path) != want {
			t.Errorf("%s has %q, want %q", path, readContent(t, path), want)
		}
	}
	if len(seen) != 4 || len(strings.Fields(listNames(t, dir))) != 5 {
		t.Errorf("%v; %s", seen, listNames(t, dir))
	}
}

func TestBackupImpossible(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("n", 253)) // with an extension it is too long for a name
	writeContent(t, path, "old")
	_, err := Update(path, replaceWith("new"), Options{Backup: true, lockFolder: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "cannot keep a copy") || readContent(t, path) != "old" {
		t.Errorf("%v; %q", err, readContent(t, path))
	}
	if strings.Contains(listNames(t, dir), " ") {
		t.Errorf("left behind: %s", listNames(t, dir))
	}
}

func TestForeignEditIsNotLost(t *testing.T) {
	for _, tt := range []struct {
		name    string
		foreign func(path string) error
		want    string
	}{
		{"edited", func(path string) error { return os.WriteFile(path, []byte("foreign"), 0o644) }, "foreign+"},
		{"removed", os.Remove, "+"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			writeContent(t, path, "old")
			calls := 0
			_, err := Update(path, func(old []byte, exists bool) ([]byte, error) {
				if calls++; calls == 1 {
					if err := tt.foreign(path); err != nil {
						t.Fatal(err)
					}
				}
				return append(bytes.Clone(old), '+'), nil
			}, Options{})
			if err != nil || calls != 2 || readContent(t, path) != tt.want || listNames(t, dir) != "f" {
				t.Errorf("%v after %d calls; %q; %s", err, calls, readContent(t, path), listNames(t, dir))
			}
		})
	}
	path := filepath.Join(t.TempDir(), "f")
	calls := 0
	_, err := Update(path, func([]byte, bool) ([]byte, error) {
		calls++
		writeContent(t, path, strconv.Itoa(calls))
		return []byte("mine"), nil
	}, Options{})
	if !errors.Is(err, ErrConflict) || calls != maxTries || readContent(t, path) != strconv.Itoa(maxTries) {
		t.Errorf("%v after %d calls; %q", err, calls, readContent(t, path))
	}
}

func TestLockIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	held := flock.New(filepath.Join(dir, ".f.lock"))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	_, err := Update(path, replaceWith("x"), Options{lockWait: 30 * time.Millisecond})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), ".f.lock") {
		t.Errorf("%v", err)
	}
	time.AfterFunc(30*time.Millisecond, func() { held.Unlock() })
	mustUpdate(t, path, "x", Options{lockWait: time.Minute})
}

func TestLockElsewhere(t *testing.T) {
	dir, locks := t.TempDir(), filepath.Join(t.TempDir(), "locks")
	path := filepath.Join(dir, strings.Repeat("n", 253)) // with a dot and an extension it is too long for a name
	t.Setenv("XDG_CACHE_HOME", locks)
	t.Setenv("HOME", locks)
	t.Setenv("LocalAppData", locks)
	for _, folder := range []string{locks, ""} {
		if _, err := Update(path, func([]byte, bool) ([]byte, error) {
			found := 0
			filepath.WalkDir(locks, func(path string, d fs.DirEntry, err error) error {
				if strings.HasSuffix(path, ".lock") {
					found++
				}
				return err
			})
			if found != 1 {
				t.Errorf("%d lock files for %q", found, folder)
			}
			return []byte("in " + folder), nil
		}, Options{lockFolder: folder}); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Update(path, replaceWith("y"), Options{lockFolder: filepath.Join(dir, "file")})
	if err == nil || !strings.Contains(err.Error(), "cannot lock") {
		t.Errorf("%v", err)
	}
}

func TestNotAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Update(filepath.Join(dir, "sub"), replaceWith("x"), Options{}); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: %v", err)
	}
	writeContent(t, filepath.Join(dir, "f"), "")
	if _, err := Update(filepath.Join(dir, "f", "g"), replaceWith("x"), Options{}); err == nil {
		t.Error("a folder that is a file")
	}
}

func TestConcurrentUpdates(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	const workers, times = 8, 20
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range times {
				if _, err := Update(path, increment, Options{lockWait: time.Minute}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := readContent(t, path); got != strconv.Itoa(workers*times) || listNames(t, dir) != "f" {
		t.Errorf("%s of %d; %s", got, workers*times, listNames(t, dir))
	}
}

func increment(old []byte, _ bool) ([]byte, error) {
	n, _ := strconv.Atoi(string(old)) // no content counts as 0
	return strconv.AppendInt(nil, int64(n+1), 10), nil
}

// TestProcesses updates one file from several processes at once.
func TestProcesses(t *testing.T) {
	if path := os.Getenv("ATOMICFILE_TEST_COUNTER"); path != "" {
		for range 25 {
			if _, err := Update(path, increment, Options{lockWait: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
			cmd.Env = append(os.Environ(), "ATOMICFILE_TEST_COUNTER="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if got := readContent(t, path); got != "100" || listNames(t, dir) != "f" {
		t.Errorf("%s of 100; %s", got, listNames(t, dir))
	}
}

// TestReaders checks that readers see only complete contents.
func TestReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	long := func(n int) string { return strings.Repeat(fmt.Sprintf("%03d ", n), 10000) }
	writeContent(t, path, long(0))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for n := range 50 {
			if _, err := Update(path, replaceWith(long(n)), Options{}); err != nil {
				t.Error(err)
			}
		}
	})
	for finished := false; !finished; {
		select {
		case <-done:
			finished = true
		default:
		}
		b, err := readSharedFile(path)
		if err != nil || len(b) != 40000 || !bytes.Equal(b, bytes.Repeat(b[:4], 10000)) {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
	wg.Wait()
}

func TestHash(t *testing.T) {
	if Hash(nil) != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" || Hash([]byte("a")) == Hash([]byte("b")) {
		t.Error("not SHA-256")
	}
}
