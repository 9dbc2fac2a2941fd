package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/atomicfile"
)

// catalogCache stores the catalogs of servers in the user's cache folder, so that the gateway can
// list tools before a server has started.
type catalogCache struct {
	folder string
	pruned sync.Once
}

var _ hub.Cache = (*catalogCache)(nil)

// cacheLife is the time after which an unused catalog is deleted. Its server was probably removed
// or changed.
const cacheLife = 90 * 24 * time.Hour

// newCatalogCache returns nil if the system does not name a cache folder.
func newCatalogCache() hub.Cache {
	folder, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return &catalogCache{folder: filepath.Join(folder, "dowel", "catalog")}
}

// entryPath returns the file of a server. The fingerprint contains secrets, so the name only holds
// a digest of it.
func (c *catalogCache) entryPath(name, fingerprint string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + fingerprint))
	return filepath.Join(c.folder, hex.EncodeToString(sum[:])+".json")
}

// Load implements [hub.Cache].
func (c *catalogCache) Load(name, fingerprint string) ([]byte, bool) {
	path := c.entryPath(name, fingerprint)
	raw, err := os.ReadFile(path)
	if err == nil {
		_ = os.Chtimes(path, time.Time{}, time.Now()) // keeps the entry from being pruned
	}
	return raw, err == nil
}

// Save implements [hub.Cache]. It ignores errors, since the hub then asks the server again.
func (c *catalogCache) Save(name, fingerprint string, catalog []byte) {
	_, _ = atomicfile.Update(c.entryPath(name, fingerprint), func([]byte, bool) ([]byte, error) { return catalog, nil },
		atomicfile.Options{Perm: 0o600, FolderPerm: 0o700})
	c.pruned.Do(c.pruneEntries)
}

// pruneEntries deletes entries that were not used for cacheLife. It ignores errors, since an old
// entry does no harm.
func (c *catalogCache) pruneEntries() {
	files, _ := os.ReadDir(c.folder)
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > cacheLife {
			_ = os.Remove(filepath.Join(c.folder, f.Name()))
		}
	}
}
