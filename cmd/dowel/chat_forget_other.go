//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package main

import "os"

// forget cannot drop what was typed and not read.
func forget(*os.File) {}
