// Package programtest builds dowel for the tests of other modules of this repository.
package programtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build builds the program into a folder and returns its path. The working directory must be a
// folder of the repository's root, as in tests of such a module.
func Build(folder string) (path string, err error) {
	path = filepath.Join(folder, "dowel")
	build := exec.Command("go", "build", "-o", path, "./cmd/dowel")
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building dowel: %w\n%s", err, output)
	}
	return path, nil
}
