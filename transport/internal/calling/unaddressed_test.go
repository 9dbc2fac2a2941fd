package calling_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// Rubbish is counted, each of it, and logged ever more rarely.
func TestStraysAreCounted(t *testing.T) {
	near, far := memory.Pipe()
	const rubbish = 1000
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = far.Read()
		for i := range rubbish {
			_ = far.Write(fmt.Appendf(nil, "line %d", i))
		}
		_ = far.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}}`))
	}()
	var log bytes.Buffer
	opts := transport.ClientOptions{Revision: mcp.LatestRevision, Logger: slog.New(slog.NewTextHandler(&log, nil)), Tap: mcptest.ClientTap(t, mcptest.SentOnly())}
	c, err := overconn.Connect(t.Context(), near, deaf{}, "", opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := frames.Unaddressed(c); got != rubbish {
		t.Errorf("%d strays were counted, not %d", got, rubbish)
	}
	c.Close()
	<-ended
	if lines := strings.Count(log.String(), "\n"); lines < 16 || lines > 30 {
		t.Errorf("%d lines were logged", lines)
	}
}
