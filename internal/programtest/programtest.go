// Package programtest builds dowel, and measures its processes, for the tests and benchmarks of
// other modules of this repository.
package programtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build builds the program of the repository in root into a folder, and returns its path.
func Build(folder, root string) (path string, err error) {
	path = filepath.Join(folder, "dowel")
	build := exec.Command("go", "build", "-o", path, "./cmd/dowel")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building dowel: %w\n%s", err, output)
	}
	return path, nil
}
