package daemon

import (
	"os"
	"testing"
	"time"
)

// Saving an entry deletes entries that were not used for a long time, and keeps the others.
func TestCatalogCache(t *testing.T) {
	folder := t.TempDir()
	cache := func() *catalogCache { return &catalogCache{folder: folder} }
	for _, name := range []string{"used", "forgotten"} {
		cache().Save(name, "1", []byte(name))
		old := time.Now().Add(-2 * cacheLife)
		if err := os.Chtimes(cache().entryPath(name, "1"), old, old); err != nil {
			t.Fatal(err)
		}
		if name == "used" {
			if catalog, ok := cache().Load(name, "1"); !ok || string(catalog) != name {
				t.Errorf("%q, %t", catalog, ok)
			}
		}
	}
	cache().Save("new", "1", []byte("new"))
	for name, want := range map[string]bool{"used": true, "forgotten": false, "new": true} {
		if _, ok := cache().Load(name, "1"); ok != want {
			t.Errorf("%s was loaded: %t", name, ok)
		}
	}
	if _, ok := cache().Load("used", "2"); ok {
		t.Error("the catalog of another definition was loaded")
	}
}
