//go:build !unix

package stdio

import (
	"io"
	"os"
)

// divertStdout returns standard output. Code that holds the old os.Stdout still writes to it.
func divertStdout() io.WriteCloser { return os.Stdout }
