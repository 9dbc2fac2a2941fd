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

// Path returns the path of the running dowel's socket. runtime is the folder for files of the
// user's login session, such as $XDG_RUNTIME_DIR. If it is empty, state is used, a folder that
// belongs to the user.
func Path(runtime, state string) string {
	if runtime != "" {
		return filepath.Join(runtime, "dowel", "dowel.sock")
	}
	return filepath.Join(state, "dowel.sock")
}

// Listen makes this process the running dowel: it listens at a path that only the user can open. It
// takes over the socket of a dowel that was killed. If a dowel is running or still ending, the error
// is [ErrRunning].
func Listen(path string) (*Place, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := checkFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l, err := listenLocked(path, lock)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &Place{Listener: l, release: lock.Close}, nil
}

// listenLocked locks the file, which stays locked as long as it is open, and listens. On a file
// system without locks a connection attempt finds a running dowel.
func listenLocked(path string, lock *os.File) (net.Listener, error) {
	if errors.Is(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w (%s)", ErrRunning, path)
	}
	if conn, err := dialSocket(context.Background(), path); err == nil {
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
	if err := os.Chmod(path, 0o600); err != nil { // no other user can enter the folder meanwhile
		l.Close()
		return nil, err
	}
	return l, nil
}

// checkFolder returns an error if other users can put a socket of their own into the folder: if it
// belongs to one of them other than root, or lets all write.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	isOwn := !ok || stat.Uid == 0 || int(stat.Uid) == os.Geteuid()
	if isOwn && info.Mode().Perm()&0o002 == 0 {
		return nil
	}
	return fmt.Errorf("other users can change the folder %s, so dowel keeps no socket there: set XDG_RUNTIME_DIR to a folder of your own, or remove that one", folder)
}

// dialSocket connects to the socket.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	if err := checkFolder(filepath.Dir(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	return d.DialContext(ctx, "unix", path)
}
