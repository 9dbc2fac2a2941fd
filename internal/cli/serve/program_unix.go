//go:build unix

package serve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// replaceProcess replaces dowel by a program: the program keeps the process id, so that signals and
// the end of the client reach it directly.
func replaceProcess(_ context.Context, path string, words []string) error {
	err := syscall.Exec(path, append([]string{filepath.Base(path)}, words...), os.Environ())
	return fmt.Errorf("cannot start %s: %w", path, err)
}
