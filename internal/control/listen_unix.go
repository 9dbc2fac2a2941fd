//go:build !windows

package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Path returns where a dowel listens. runtime is the folder of what lives as long as the user's session, such as
// $XDG_RUNTIME_DIR; state, where that is empty, one that is the user's own.
func Path(runtime, state string) string {
	if runtime != "" {
		return filepath.Join(runtime, "dowel", "dowel.sock")
	}
	return filepath.Join(state, "dowel.sock")
}

// Listen takes connections at a path, which nobody but the user can open, and makes this process the dowel that is running.
// What a dowel has left behind that was killed is taken over; where one is running, or has not ended yet, the error is
// [ErrRunning].
func Listen(path string) (*Place, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l, err := take(path, lock)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &Place{Listener: l, release: lock.Close}, nil
}

// take listens with the lock, which is held as long as its file is open. On a file system without locks the socket decides.
func take(path string, lock *os.File) (net.Listener, error) {
	if errors.Is(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w (%s)", ErrRunning, path)
	}
	if conn, err := dial(context.Background(), path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("%w (%s)", ErrRunning, path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil { // the folder is the user's own: nobody came in between
		l.Close()
		return nil, err
	}
	return l, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	return d.DialContext(ctx, "unix", path)
}
