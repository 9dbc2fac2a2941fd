//go:build !windows

package control

import (
	"context"
	"crypto/sha256"
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
// takes over the socket of a dowel that was killed. If a dowel is running or still ending, the
// error is [ErrRunning].
//
// If the folder of path cannot be written, such as in a read-only home, the socket is in a private
// folder below [os.TempDir], where clients of path look too; [Place.Fallback] tells why.
func Listen(path string) (*Place, error) {
	place, err := listenIn(path)
	if !isReadOnly(err) {
		return place, err
	}
	path = fallbackPath(path)
	if made := os.Mkdir(filepath.Dir(path), 0o700); made != nil && !errors.Is(made, os.ErrExist) {
		return nil, errors.Join(err, made)
	}
	if other := checkPrivate(filepath.Dir(path)); other != nil {
		return nil, errors.Join(err, other)
	}
	place, other := listenIn(path)
	if other != nil {
		return nil, other
	}
	place.Fallback = err
	return place, nil
}

// isReadOnly reports whether err says that a folder cannot be written.
func isReadOnly(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// fallbackPath returns the path of the socket if the folder of path cannot be written. The name of
// its folder depends on path, so that several homes have sockets of their own.
func fallbackPath(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(os.TempDir(), fmt.Sprintf("dowel-%d-%x", os.Geteuid(), sum[:6]), "dowel.sock")
}

// checkPrivate returns an error unless folder is a folder, not a link to one, that belongs to this
// user and that no other user can enter.
func checkPrivate(folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && info.IsDir() && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return fmt.Errorf("%s is not a private folder of yours, so dowel keeps no socket there: set XDG_RUNTIME_DIR to a folder of your own", folder)
}

// listenIn listens at path and nowhere else.
func listenIn(path string) (*Place, error) {
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
	if conn, err := dialAt(context.Background(), path); err == nil {
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

// dialSocket connects to the socket at path, or to its fallback if there is none.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	conn, err := dialAt(ctx, path)
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	if path = fallbackPath(path); checkPrivate(filepath.Dir(path)) == nil {
		if conn, other := dialAt(ctx, path); other == nil {
			return conn, nil
		}
	}
	return nil, err
}

// dialAt connects to the socket at path and to no other.
func dialAt(ctx context.Context, path string) (net.Conn, error) {
	if err := checkFolder(filepath.Dir(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	return d.DialContext(ctx, "unix", path)
}
