package rawjson

import (
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// An id is the first or last member of a message. A nested id would be preceded by the name of its
// object.
var (
	idFirst = lazyregexp.New(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("[^"\\]*"|-?[0-9]+)\s*,`)
	idLast  = lazyregexp.New(`\}\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("[^"\\]*"|-?[0-9]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// GuessID guesses the id of a JSON-RPC message that cannot be parsed from its first and last bytes.
// It returns the raw id, or nil if it finds none.
func GuessID(head, tail []byte) []byte {
	found := idFirst().FindSubmatch(head)
	if found == nil {
		found = idLast().FindSubmatch(tail)
	}
	if found == nil {
		return nil
	}
	return found[1]
}
