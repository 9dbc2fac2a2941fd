package desktop

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/auth"
)

// runKeyringChild is the program of the child processes of this file. It saves a login with the
// keyring of the system, and prints where the key is.
func runKeyringChild(folder string) int {
	s, err := OpenStore(folder, nil)
	if err == nil {
		err = s.Update(context.Background(), server, func(*auth.Record) (*auth.Record, error) {
			return &auth.Record{Server: server, AccessToken: "canary"}, nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	place, err := s.KeyPlace()
	fmt.Print(place, err)
	return 0
}

// acceptSilently returns a socket of a session bus that accepts connections and never answers.
func acceptSilently(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "bus") // a name that is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "bus")
	bus, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var conns []net.Conn
		for {
			c, err := bus.Accept()
			if err != nil {
				break
			}
			conns = append(conns, c)
		}
		for _, c := range conns {
			c.Close()
		}
	}()
	t.Cleanup(func() {
		bus.Close()
		<-done
		os.RemoveAll(folder)
	})
	return path
}

// Without a session bus, with one that hangs, and with one that is gone, the first login is saved
// with a key file. A session that has no keyring reads it later.
func TestSystemKeyringOutOfReach(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the keyring of this system is not on a session bus")
	}
	for name, bus := range map[string]string{
		"no bus": "", "bus hangs": "unix:path=" + acceptSilently(t), "bus is gone": "unix:path=" + filepath.Join(t.TempDir(), "gone"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "auth")
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			for _, v := range os.Environ() {
				if !strings.HasPrefix(v, "DBUS_") && !strings.HasPrefix(v, "XDG_RUNTIME_DIR=") && !strings.HasPrefix(v, "DOWEL_") {
					cmd.Env = append(cmd.Env, v)
				}
			}
			cmd.Env = append(cmd.Env, "TEST_KEYRING_FOLDER="+folder, "DBUS_SESSION_BUS_ADDRESS="+bus)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != InFile+"<nil>" {
				t.Fatalf("%v: %s", err, out)
			}
			checkToken(t, openTestStore(t, folder, nil, nil), "canary")
			checkFiles(t, folder)
		})
	}
}
