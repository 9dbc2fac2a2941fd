//go:build unix

package stdio

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/transport"
)

// A dial whose time is over does not wait for a server that takes its time to exit, and the server
// ends nevertheless.
func TestDialReturnsAtItsDeadline(t *testing.T) {
	t.Parallel()
	mayExit := filepath.Join(t.TempDir(), "may exit")
	c := sh(`echo loading >&2; while read -r line; do :; done; until [ -e "$MAY_EXIT" ]; do sleep 0.02; done`)
	c.Env = map[string]string{"MAY_EXIT": mayExit}
	c.Grace = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	returned := make(chan error, 1)
	go func() {
		_, err := c.Dial(ctx, nil, transport.ClientOptions{Verdicts: new(transport.Verdicts)})
		returned <- err
	}()
	defer func() { _ = os.WriteFile(mayExit, nil, 0o600) }()
	polltest.Within(t, func() {
		err := <-returned
		returned <- err
	})
	err := <-returned
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if err := os.WriteFile(mayExit, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	polltest.Within(t, func() { process.AwaitEnd(err) })
}
