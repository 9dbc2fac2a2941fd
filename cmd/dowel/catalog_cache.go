package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/atomicfile"
)

// catalogCache keeps what servers offer in the user's cache folder, so that it is known before they are started.
type catalogCache struct{ folder string }

var _ hub.Cache = catalogCache{}

// newCatalogCache returns nil where the user has no cache folder.
func newCatalogCache() hub.Cache {
	folder, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return catalogCache{filepath.Join(folder, "dowel", "catalog")}
}

// path is the file of a server. The fingerprint is made from secrets too, and only a digest of it is kept.
func (c catalogCache) path(name, fingerprint string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + fingerprint))
	return filepath.Join(c.folder, hex.EncodeToString(sum[:])+".json")
}

// Load implements [hub.Cache].
func (c catalogCache) Load(name, fingerprint string) ([]byte, bool) {
	raw, err := os.ReadFile(c.path(name, fingerprint))
	return raw, err == nil
}

// Save implements [hub.Cache]. What cannot be kept is learned again.
func (c catalogCache) Save(name, fingerprint string, offer []byte) {
	_, _ = atomicfile.Update(c.path(name, fingerprint), func([]byte, bool) ([]byte, error) { return offer, nil },
		atomicfile.Options{Perm: 0o600, FolderPerm: 0o700})
}
