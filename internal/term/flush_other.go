//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package term

import "os"

// flushInput does nothing: dropping unread keys is not implemented for this system.
func flushInput(*os.File) {}
