package transport_test

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/transport"
)

// losing is a Conn that loses each frame "lose", with the id and the kind behind it.
type losing struct{ transport.Conn }

func (l *losing) Read() ([]byte, error) {
	frame, err := l.Conn.Read()
	id, lose := strings.CutPrefix(string(frame), "lose")
	if err != nil || !lose {
		return frame, err
	}
	lost := &transport.FrameError{Reason: "too long"}
	id, lost.Method = strings.CutSuffix(id, " method")
	id, lost.Response = strings.CutSuffix(id, " response")
	lost.ID, _ = jsonrpc.ParseID([]byte(strings.TrimSpace(id)))
	return nil, fmt.Errorf("wrapped: %w", lost)
}
