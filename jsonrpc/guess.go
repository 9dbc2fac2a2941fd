package jsonrpc

import (
	"regexp"
	"sync"
)

// An id comes first or last in a message; within params or result it would be preceded by their names.
var (
	idFirst = pattern(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("[^"\\]*"|-?[0-9]+)\s*,`)
	idLast  = pattern(`\}\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("[^"\\]*"|-?[0-9]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// pattern is compiled when it is first needed, which it mostly is not.
func pattern(p string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(p) })
}

// GuessID finds the id of a message that cannot be read in what is known of it: its beginning and its end. The zero ID is
// no guess.
func GuessID(head, tail []byte) ID {
	found := idFirst().FindSubmatch(head)
	if found == nil {
		found = idLast().FindSubmatch(tail)
	}
	if found == nil {
		return ID{}
	}
	id, _ := ParseID(found[1]) // the zero ID is no guess
	return id
}
