package daemon

import (
	"os"
	"testing"
	"time"
)

// What is of use stays; what nobody has asked for in a long time goes when something else is saved.
func TestCatalogCache(t *testing.T) {
	folder := t.TempDir()
	cache := func() *catalogCache { return &catalogCache{folder: folder} }
	for _, name := range []string{"used", "forgotten"} {
		cache().Save(name, "1", []byte(name))
		old := time.Now().Add(-2 * cacheLife)
		if err := os.Chtimes(cache().path(name, "1"), old, old); err != nil {
			t.Fatal(err)
		}
		if name == "used" {
			if offer, ok := cache().Load(name, "1"); !ok || string(offer) != name {
				t.Errorf("%q, %t", offer, ok)
			}
		}
	}
	cache().Save("new", "1", []byte("new"))
	for name, want := range map[string]bool{"used": true, "forgotten": false, "new": true} {
		if _, ok := cache().Load(name, "1"); ok != want {
			t.Errorf("%s is there: %t", name, ok)
		}
	}
	if _, ok := cache().Load("used", "2"); ok {
		t.Error("an offer of another definition is taken")
	}
}
