//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package term

import "os"

// flushInput cannot drop what was typed and not read.
func flushInput(*os.File) {}
