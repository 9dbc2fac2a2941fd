//go:build !unix

package stdio

import (
	"io"
	"os"
)

// standardInput returns standard input as a reader whose Close interrupts Read.
func standardInput() io.ReadCloser { return readInGoroutine(os.Stdin) }
