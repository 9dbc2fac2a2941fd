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

// catalogCache keeps what servers offer in the user's cache folder, so that it is known before they are started.
type catalogCache struct {
	folder string
	pruned sync.Once
}

var _ hub.Cache = (*catalogCache)(nil)

// cacheLife is the time after which an unused offer is deleted: its server was removed or changed.
const cacheLife = 90 * 24 * time.Hour

// newCatalogCache returns nil if the user has no cache folder.
func newCatalogCache() hub.Cache {
	folder, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return &catalogCache{folder: filepath.Join(folder, "dowel", "catalog")}
}

// path is the file of a server. The fingerprint is made from secrets too, and only a digest of it is kept.
func (c *catalogCache) path(name, fingerprint string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + fingerprint))
	return filepath.Join(c.folder, hex.EncodeToString(sum[:])+".json")
}

// Load implements [hub.Cache].
func (c *catalogCache) Load(name, fingerprint string) ([]byte, bool) {
	path := c.path(name, fingerprint)
	raw, err := os.ReadFile(path)
	if err == nil {
		_ = os.Chtimes(path, time.Time{}, time.Now()) // it is of use
	}
	return raw, err == nil
}

// Save implements [hub.Cache]. What cannot be kept is learned again.
func (c *catalogCache) Save(name, fingerprint string, offer []byte) {
	_, _ = atomicfile.Update(c.path(name, fingerprint), func([]byte, bool) ([]byte, error) { return offer, nil },
		atomicfile.Options{Perm: 0o600, FolderPerm: 0o700})
	c.pruned.Do(c.prune)
}

// prune deletes what has not been of use for long. What cannot be deleted does no harm.
func (c *catalogCache) prune() {
	files, _ := os.ReadDir(c.folder)
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > cacheLife {
			_ = os.Remove(filepath.Join(c.folder, f.Name()))
		}
	}
}
