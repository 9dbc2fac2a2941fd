//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package term

import "os"

// flushInput does nothing: this system has no portable way to drop unread keys.
func flushInput(*os.File) {}
