package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// redisEnv names a Redis for the tests, which plain go test runs without.
const redisEnv = "DOWEL_TEST_REDIS"

func redisURL(t *testing.T) string {
	t.Helper()
	address := os.Getenv(redisEnv)
	if address == "" {
		t.Skipf("%s is not set: set it to the URL of a Redis to test that backend", redisEnv)
	}
	return address
}

// openRedis opens a store under a prefix, or under a new one for "". Remaining keys expire with the
// Redis of the tests.
func openRedis(t *testing.T, prefix string) Store {
	t.Helper()
	if prefix == "" {
		prefix = fmt.Sprintf("dowel:test:%s:%d:", t.Name(), time.Now().UnixNano())
	}
	store, err := Redis(t.Context(), redisURL(t), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func openBolt(t *testing.T) Store {
	t.Helper()
	store, err := Bolt(filepath.Join(t.TempDir(), "new", "kv.db"))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// forStores runs a test on each backend. The backends of this process run with a fake clock, so no
// test waits.
func forStores(t *testing.T, test func(t *testing.T, store Store)) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, Memory()) })
	})
	t.Run("bolt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, openBolt(t)) })
	})
	t.Run("redis", func(t *testing.T) { test(t, openRedis(t, "")) })
}

// record collects the changes that a store reports.
func record(t *testing.T, store Store) <-chan Change {
	t.Helper()
	changes := make(chan Change, 100)
	if err := store.Watch(func(c Change) { changes <- c }); err != nil {
		t.Fatal(err)
	}
	return changes
}

func wantChange(t *testing.T, changes <-chan Change, kind ChangeKind, key string) {
	t.Helper()
	select {
	case got := <-changes:
		if want := (Change{Kind: kind, Key: key}); got != want {
			t.Errorf("got the change %+v, want %+v", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("no change came, want %v of %q", kind, key)
	}
}

func wantKeys(t *testing.T, store Store, prefix, after string, limit int, want ...string) {
	t.Helper()
	got, err := store.Keys(t.Context(), prefix, after, limit)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Keys(%q, %q, %d) = %q, %v; want %q", prefix, after, limit, got, err, want)
	}
}

func set(t *testing.T, store Store, key, value string, ttl time.Duration) (created bool) {
	t.Helper()
	created, err := store.Set(t.Context(), key, value, ttl)
	if err != nil {
		t.Fatalf("Set(%q): %v", key, err)
	}
	return created
}

func TestStoreKeepsPairs(t *testing.T) {
	forStores(t, func(t *testing.T, store Store) {
		defer store.Close()
		ctx := t.Context()
		changes := record(t, store)
		if _, err := store.Get(ctx, "a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Get of an unknown key: %v, want fs.ErrNotExist", err)
		}
		if !set(t, store, "a", "1", 0) {
			t.Error("the first Set created nothing")
		}
		wantChange(t, changes, Created, "a")
		if set(t, store, "a", "", 0) {
			t.Error("the second Set created something")
		}
		wantChange(t, changes, Replaced, "a")
		if value, err := store.Get(ctx, "a"); value != "" || err != nil {
			t.Errorf("Get = %q, %v; want the empty value", value, err)
		}
		for _, want := range []bool{true, false} {
			if existed, err := store.Delete(ctx, "a"); existed != want || err != nil {
				t.Errorf("Delete = %v, %v; want %v", existed, err, want)
			}
		}
		wantChange(t, changes, Removed, "a")
		if len(changes) > 0 {
			t.Errorf("a change too many: %+v", <-changes)
		}
	})
}

func TestStoreListsKeys(t *testing.T) {
	forStores(t, func(t *testing.T, store Store) {
		defer store.Close()
		for _, key := range []string{"b", "a", "ab", "a/b c", "ä", "日本", "\U0010ffff", "a\n"} {
			set(t, store, key, "x", 0)
		}
		wantKeys(t, store, "", "", 100, "a", "a\n", "a/b c", "ab", "b", "ä", "日本", "\U0010ffff")
		wantKeys(t, store, "", "", 2, "a", "a\n")
		wantKeys(t, store, "", "a\n", 2, "a/b c", "ab")
		wantKeys(t, store, "", "aa", 2, "ab", "b")
		wantKeys(t, store, "a", "", 100, "a", "a\n", "a/b c", "ab")
		wantKeys(t, store, "a", "a", 100, "a\n", "a/b c", "ab")
		wantKeys(t, store, "a", "b", 100)
		wantKeys(t, store, "b", "a", 100, "b")
		wantKeys(t, store, "\U0010ffff", "", 100, "\U0010ffff")
		wantKeys(t, store, "none", "", 100)
	})
}

func TestStoreExpires(t *testing.T) {
	forStores(t, func(t *testing.T, store Store) {
		defer store.Close()
		changes := record(t, store)
		set(t, store, "later", "x", 200*time.Millisecond)
		set(t, store, "sooner", "x", 50*time.Millisecond)
		set(t, store, "kept", "x", 50*time.Millisecond)
		set(t, store, "kept", "x", 0)
		set(t, store, "again", "x", 50*time.Millisecond)
		set(t, store, "again", "x", 100*time.Millisecond)
		for _, key := range []string{"later", "sooner", "kept"} {
			wantChange(t, changes, Created, key)
		}
		wantChange(t, changes, Replaced, "kept")
		wantChange(t, changes, Created, "again")
		wantChange(t, changes, Replaced, "again")

		wantChange(t, changes, Removed, "sooner")
		wantChange(t, changes, Removed, "again")
		if _, err := store.Get(t.Context(), "sooner"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Get of an expired key: %v, want fs.ErrNotExist", err)
		}
		wantChange(t, changes, Removed, "later")
		wantKeys(t, store, "", "", 100, "kept")
		if !set(t, store, "later", "x", 0) {
			t.Error("setting an expired key created nothing")
		}
	})
}

// An expired pair does not exist, even before the sweeper has removed it.
func TestStoreHidesExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, store := range map[string]Store{"memory": Memory(), "bolt": openBolt(t)} {
			changes := record(t, store)
			set(t, store, "a", "x", time.Hour)
			wantChange(t, changes, Created, "a")
			switch s := store.(type) {
			case *memory:
				s.sweeper.stopSweeper()
			case *boltStore:
				s.sweeper.stopSweeper()
			}
			time.Sleep(time.Hour)
			if _, err := store.Get(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: Get: %v, want fs.ErrNotExist", name, err)
			}
			wantKeys(t, store, "", "", 1)
			if existed, err := store.Delete(t.Context(), "a"); existed || err != nil {
				t.Errorf("%s: Delete = %v, %v; want false", name, existed, err)
			}
			wantChange(t, changes, Removed, "a")
			if b, ok := store.(*boltStore); ok {
				b.db.Close()
			}
		}
	})
}

func TestBoltOutlivesItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	first, err := Bolt(path)
	if err != nil {
		t.Fatal(err)
	}
	set(t, first, "kept", "value", 0)
	set(t, first, "brief", "value", time.Millisecond)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Bolt(path)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if value, err := second.Get(t.Context(), "kept"); value != "value" || err != nil {
		t.Errorf("Get = %q, %v; want what was stored before", value, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file is open to others: %v, %v", info, err)
	}
}

func TestBoltErrors(t *testing.T) {
	dir := t.TempDir()
	open, err := Bolt(filepath.Join(dir, "open.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, slices.Repeat([]byte("no database "), 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "open.db"): "is open in another process",
		garbage:                       "is not a data file of this server",
		filepath.Join(garbage, "x"):   "cannot create the folder",
		dir:                           "cannot open the data file",
	} {
		begun := time.Now()
		_, err := Bolt(path)
		wantError(t, err, want)
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s: the error took %v", path, took)
		}
	}
}

func TestRedisURLs(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost":                    "cannot be used",
		"redis://user:secret@local host:6379": "cannot be used",
		"redis://user:secret@127.0.0.1:1":     "no Redis answers at 127.0.0.1:1",
	} {
		_, err := Redis(t.Context(), address, "")
		wantError(t, err, want)
		if err != nil && containsSecret(err) {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

// Two stores on one Redis are two processes, as far as either can tell.
func TestRedisSharesChanges(t *testing.T) {
	prefix := fmt.Sprintf("dowel:test:shared:%d:", time.Now().UnixNano())
	one, two := openRedis(t, prefix), openRedis(t, prefix)
	defer one.Close()
	defer two.Close()
	changes := record(t, two)
	set(t, one, "a", "1", 0)
	wantChange(t, changes, Created, "a")
	set(t, two, "a", "2", 0)
	wantChange(t, changes, Replaced, "a")
	if value, err := one.Get(t.Context(), "a"); value != "2" || err != nil {
		t.Errorf("Get = %q, %v; want the other's value", value, err)
	}
	set(t, one, "b", "1", 30*time.Millisecond)
	wantChange(t, changes, Created, "b")
	wantChange(t, changes, Removed, "b") // once, whichever of the two sweeps it up
	if _, err := one.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantChange(t, changes, Removed, "a")
	wantKeys(t, two, "", "", 10)
}

func TestRedisReportsGaps(t *testing.T) {
	store := openRedis(t, "").(*redisStore)
	defer store.Close()
	changes := record(t, store)
	set(t, store, "a", "1", 0)
	wantChange(t, changes, Created, "a")
	// The server cuts the subscription, as it does with a reader that is too slow.
	if _, err := store.do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
		t.Fatal(err)
	}
	wantChange(t, changes, Missed, "")
	wantChange(t, changes, Replaced, "a")
	set(t, store, "a", "2", 0)
	wantChange(t, changes, Replaced, "a")
}

func TestStoreConcurrently(t *testing.T) {
	forStores(t, func(t *testing.T, store Store) {
		defer store.Close()
		count := 0 // unlocked: f is called for one change at a time
		reported := make(chan struct{}, 1000)
		if err := store.Watch(func(Change) { count++; reported <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
		const workers, rounds = 4, 10
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				key := fmt.Sprintf("key %d", w)
				for range rounds {
					if created, err := store.Set(t.Context(), key, "x", 0); !created || err != nil {
						t.Errorf("Set = %v, %v", created, err)
					}
					if _, err := store.Keys(t.Context(), "key", "", 10); err != nil {
						t.Error(err)
					}
					if existed, err := store.Delete(t.Context(), key); !existed || err != nil {
						t.Errorf("Delete = %v, %v", existed, err)
					}
				}
			})
		}
		wg.Wait()
		for range 2 * workers * rounds {
			<-reported
		}
	})
}

func TestDefaultPath(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	path, err := DefaultPath()
	if want := filepath.Join(os.Getenv("XDG_DATA_HOME"), "dowel", "kv.db"); path != want || err != nil {
		t.Errorf("got %s, %v; want %s", path, err, want)
	}
	t.Setenv("XDG_DATA_HOME", "relative")
	if path, err := DefaultPath(); !filepath.IsAbs(path) || err != nil {
		t.Errorf("got %s, %v; want an absolute path", path, err)
	}
}
