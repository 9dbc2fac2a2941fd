package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
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
	if isWine() && isListening(path) {
		return nil, fmt.Errorf("%w (%s)", ErrRunning, path)
	}
	l, err := winio.ListenPipe(path, &winio.PipeConfig{SecurityDescriptor: ownerOnly})
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w (%s)", ErrRunning, path)
	}
	if err != nil {
		return nil, err
	}
	if isWine() {
		occupyFirstInstance(path)
	}
	return &Place{Listener: l}, nil
}

// isWine reports whether Wine runs this program instead of Windows. Wine 8.0, and perhaps others,
// ignores two things that the listener requests. Several processes can create the first instance of
// a pipe; see isListening. And that instance accepts a client; see occupyFirstInstance.
func isWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// isListening reports whether a process listens at the pipe.
func isListening(path string) bool {
	limit := time.Second
	conn, err := winio.DialPipe(path, &limit)
	if err == nil {
		conn.Close()
	}
	return err == nil || errors.Is(err, winio.ErrTimeout)
}

// occupyFirstInstance connects to the first instance of the pipe and hangs up. The listener only
// reserves the name with this instance and never reads from it. It creates the instance
// disconnected, so that no client can connect to it. Wine lets one client do so, which would wait
// for an answer forever; so this process is that client.
func occupyFirstInstance(path string) {
	limit := time.Second
	if conn, err := winio.DialPipe(path, &limit); err == nil {
		conn.Close()
	}
}

// dialSocket connects to the pipe.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	conn, err := winio.DialPipeContext(ctx, path)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: err}
	}
	return conn, nil
}
