//go:build !unix

package stdio

import (
	"io"
	"os"
)

// standardInput returns stdin as something whose Read a Close interrupts.
func standardInput() io.ReadCloser { return pump(os.Stdin) }
