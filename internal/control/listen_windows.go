package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strings"

	"github.com/Microsoft/go-winio"
)

// Path returns the name of the pipe of the user's running dowel.
func Path(_, _ string) string {
	name := "user"
	if u, err := user.Current(); err == nil {
		name = strings.ReplaceAll(u.Uid, `\`, "-")
	}
	return `\\.\pipe\dowel-` + name
}

// Listen makes this process the running dowel: it listens at a pipe that only the user can open. If
// a dowel is running, the error is [ErrRunning].
func Listen(path string) (*Place, error) {
	const ownerOnly = "D:P(A;;GA;;;OW)"
	l, err := winio.ListenPipe(path, &winio.PipeConfig{SecurityDescriptor: ownerOnly})
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w (%s)", ErrRunning, path)
	}
	if err != nil {
		return nil, err
	}
	return &Place{Listener: l}, nil
}

// dialSocket connects to the pipe.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	conn, err := winio.DialPipeContext(ctx, path)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: err}
	}
	return conn, nil
}
