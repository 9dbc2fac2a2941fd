//go:build unix

package skills

import "syscall"

// nonblock makes opening a pipe return at once. A pipe may have replaced a file after a check.
const nonblock = syscall.O_NONBLOCK
