package screen

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program that accepts connections and says nothing, or stops after the greeting, holds up no
// picture longer than its context.
func TestStalledServer(t *testing.T) {
	accepted := append([]byte{1, 0, 11, 0, 0, 0, 18, 0}, make([]byte, 18*4)...)
	accepted[8+20], accepted[8+32+20], accepted[8+32+22] = 1, 1, 1 // screens, width and height of the first one
	for name, greeting := range map[string][]byte{"silent": nil, "greeting": accepted} {
		path := filepath.Join(t.TempDir(), "x")
		listener, err := net.Listen("unix", path+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped, ended := errors.New("stopped"), make(chan struct{})
		go func() {
			defer close(ended)
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.ReadFull(conn, make([]byte, 12))
			_, _ = conn.Write(greeting)
			if greeting != nil {
				_, _ = io.ReadFull(conn, make([]byte, 20)) // the request of the picture
			}
			cancel(stopped)
			_, _ = io.Copy(io.Discard, conn) // until the server closes the connection
		}()
		if _, err := captureX11(ctx, path+":0"); !errors.Is(err, stopped) {
			t.Errorf("%s: %v", name, err)
		}
		<-ended
		cancel(nil)
	}
}

// The error names an X server that does not answer in time.
func TestStalledServerError(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := captureX11(ctx, ":0"); err == nil || !strings.Contains(err.Error(), "the X server :0 does not answer in time") {
		t.Error(err)
	}
}

func TestParseDisplay(t *testing.T) {
	for display, want := range map[string]displayAddress{
		":7":              {"unix", "/tmp/.X11-unix/X7", "", "7", 0},
		"unix:7.1":        {"unix", "/tmp/.X11-unix/X7", "", "7", 1},
		"/tmp/launch/x:0": {"unix", "/tmp/launch/x:0", "", "0", 0},
		"host:10.2":       {"tcp", "host:6010", "host", "10", 2},
		"tcp6/host:0":     {"tcp6", "host:6000", "host", "0", 0},
		"[::1]:1":         {"tcp", "[::1]:6001", "[::1]", "1", 0},
		"":                {},
		"0":               {},
		":":               {},
		":x":              {},
		":-1":             {},
		":0.x":            {},
		":99999":          {},
	} {
		got, err := parseDisplay(display)
		if got != want || (err != nil) != (want == displayAddress{}) {
			t.Errorf("%q: %+v, %v; want %+v", display, got, err, want)
		}
	}
}

// writeAuthority writes a file of cookies and returns its path.
func writeAuthority(t *testing.T, entries ...authEntry) string {
	t.Helper()
	var data []byte
	for _, e := range entries {
		data = binary.BigEndian.AppendUint16(data, e.family)
		for _, field := range []string{e.host, e.number, e.kind, string(e.cookie)} {
			data = append(binary.BigEndian.AppendUint16(data, uint16(len(field))), field...)
		}
	}
	path := filepath.Join(t.TempDir(), "authority")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A server that wants a cookie gets the cookie of its display.
func TestCookie(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	wrong, right := bytes.Repeat([]byte("w"), 16), bytes.Repeat([]byte("r"), 16)
	display := startScreen(t, "64x64x24", "-auth", writeAuthority(t, authEntry{256, host, "", cookieKind, right}))
	number := strings.TrimPrefix(display, ":")
	for name, entries := range map[string][]authEntry{
		"none":         {},
		"another host": {{256, "elsewhere", number, cookieKind, right}},
		"wrong cookie": {{256, host, number, cookieKind, wrong}},
	} {
		t.Setenv("XAUTHORITY", writeAuthority(t, entries...))
		if _, err := captureX11(t.Context(), display); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	others := []authEntry{{256, host, "4242", cookieKind, wrong}, {256, host, number, "ANOTHER-KIND", wrong}}
	for name, entry := range map[string]authEntry{"this host": {256, host, number, cookieKind, right}, "any host": {65535, "", "", cookieKind, right}} {
		path := writeAuthority(t, append(others, entry)...)
		t.Setenv("XAUTHORITY", path)
		if _, err := captureX11(t.Context(), display); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Truncate(path, 5); err != nil {
			t.Fatal(err)
		}
		if _, err := captureX11(t.Context(), display); err == nil {
			t.Errorf("%s: the server accepts a truncated file", name)
		}
	}
}
