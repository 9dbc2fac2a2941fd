package session

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
)

// A program that continues a session holds its lock, a file beside it. The system releases the lock
// of a program that crashes.

// Hold makes [IsHeld] true until Close. It has no effect if the lock cannot be made, or if another
// program holds the session.
func (s *Session) Hold() {
	if s.release != nil || os.MkdirAll(filepath.Dir(s.path), 0o700) != nil {
		return
	}
	if release, ok, err := atomicfile.TryLock(lockPath(s.path)); err == nil && ok {
		s.release = release
	}
}

// IsHeld reports whether a program continues the session of a file now.
func IsHeld(path string) bool {
	lock := lockPath(path)
	if _, err := os.Stat(lock); err != nil {
		return false
	}
	release, ok, err := atomicfile.TryLock(lock)
	if ok {
		release()
	}
	return err == nil && !ok
}

func lockPath(path string) string { return strings.TrimSuffix(path, extension) + lockExtension }
