//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A named pipe is not read: perhaps no program ever writes to it. A pipe of this process is.
func TestNamedPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readText(path, 100); err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("got %v", err)
	}
	_, err := Variables{}.withDefaults().ReadFile(path) // of ${file:…} and envFile
	if err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("got %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if text, err := readText("/dev/fd/"+strconv.Itoa(int(r.Fd())), 100); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}
