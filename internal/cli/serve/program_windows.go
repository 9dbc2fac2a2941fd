package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// replaceProcess runs a program until it ends. Windows cannot replace a process. The program reads
// the standard input of dowel, so it ends with the client.
func replaceProcess(_ context.Context, path string, words []string) error {
	child := exec.Command(path, words...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := child.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return &programError{path, ended.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", path, err)
	}
	return nil
}

// programError is the failure of a program. dowel ends with its exit code.
type programError struct {
	path string
	code int
}

func (e *programError) Error() string {
	return fmt.Sprintf("%s ended with exit code %d", e.path, e.code)
}
func (e *programError) ExitStatus() int { return e.code }
