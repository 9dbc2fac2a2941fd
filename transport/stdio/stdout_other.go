//go:build !unix

package stdio

import "os"

// divertStdout returns standard output; what holds os.Stdout already keeps it.
func divertStdout() *os.File { return os.Stdout }
