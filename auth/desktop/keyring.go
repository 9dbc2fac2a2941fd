package desktop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	zalando "github.com/zalando/go-keyring"
)

// keyringService is the name under which the keyring shows the key to the user.
const keyringService = "dowel"

func keyringUser(keyID string) string { return "key of logins " + keyID }

// keyring is the keyring of a desktop. Its methods may hang.
type keyring interface {
	Get(service, user string) (string, error)
	Set(service, user, secret string) error
	Delete(service, user string) error
}

// systemKeyring is the keyring of this desktop.
type systemKeyring struct{}

func (systemKeyring) Get(service, user string) (string, error) {
	if err := checkSessionBus(); err != nil {
		return "", err
	}
	return zalando.Get(service, user)
}

func (systemKeyring) Set(service, user, secret string) error {
	if err := checkSessionBus(); err != nil {
		return err
	}
	return zalando.Set(service, user, secret)
}

func (systemKeyring) Delete(service, user string) error {
	if err := checkSessionBus(); err != nil {
		return err
	}
	return zalando.Delete(service, user)
}

// checkSessionBus fails if this user has no session bus. The library would start one, which has no
// keyring.
func checkSessionBus() error {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" || os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return nil
	}
	if folder := os.Getenv("XDG_RUNTIME_DIR"); folder != "" {
		if _, err := os.Stat(filepath.Join(folder, "bus")); err == nil {
			return nil
		}
	}
	return errors.New("this session has no D-Bus, and so no keyring")
}

// probeKeyring writes, reads and deletes an entry.
func (s *Store) probeKeyring(ctx context.Context) error {
	_, err := s.askKeyring(ctx, probeTimeout, func() (string, error) {
		user := fmt.Sprintf("probe %d %d", os.Getpid(), time.Now().UnixNano())
		if err := s.keyring.Set(keyringService, user, user); err != nil {
			return "", err
		}
		text, err := s.keyring.Get(keyringService, user)
		if err == nil && text != user {
			err = errors.New("it returns another secret than it got")
		}
		return "", errors.Join(err, s.keyring.Delete(keyringService, user))
	})
	return err
}

// askKeyring calls ask, for at most a time. A keyring that hangs keeps the goroutine of ask, so
// only one request at a time is made.
func (s *Store) askKeyring(ctx context.Context, timeout time.Duration, ask func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	for asking := s.asking; ; {
		select {
		case asking <- struct{}{}:
			asking = nil // once
			go func() {
				text, err := ask()
				<-s.asking
				answers <- answer{text, err}
			}()
		case a := <-answers:
			return a.text, a.err
		case <-limit.C:
			return "", fmt.Errorf("it did not answer within %v", timeout)
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
