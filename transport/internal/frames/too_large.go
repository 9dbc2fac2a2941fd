package frames

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/transport"
)

// TooLarge returns the error for a frame of size bytes that is over the limit. head and tail are
// the ends of the frame; the id and the kind of the message are guessed from them.
func TooLarge(size int64, limit int, head, tail []byte) *transport.FrameError {
	id, _ := jsonrpc.ParseID(rawjson.GuessID(head, tail)) // an error gives the zero ID
	begins := firstMember().FindSubmatch(head)
	return &transport.FrameError{
		Reason: fmt.Sprintf("a message of %d bytes is over the limit of %d", size, limit),
		ID:     id,
		Method: begins != nil && begins[1] != nil, Response: begins != nil && begins[2] != nil,
	}
}

// firstMember matches the beginning of a message up to the first member that tells its kind.
var firstMember = lazyregexp.New(`^\s*\{\s*(?:"(?:jsonrpc|id)"\s*:\s*(?:"[^"\\]*"|-?[0-9]+)\s*,\s*)*(?:("(?:method|params)")|("(?:result|error)"))\s*:`)
