// Package lazyregexp compiles regular expressions on first use. A pattern that a package compiles
// when the program begins costs every program that links the package 10 to 50 µs, also those that
// never use it.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles the pattern once and returns it. The function panics if the
// pattern is invalid. It may be called by several goroutines at once.
func New(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
