//go:build !unix

package stdio

import "os"

// divertStdout returns standard output. Code that holds the old os.Stdout still writes to it.
func divertStdout() *os.File { return os.Stdout }
