package screen

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jezek/xgb"
)

// dialX11 connects to the X server of a display. The connection ends with ctx, or when the caller
// calls closeConn. The dialing of package xgb has no deadline, and its Close waits for an answer.
func dialX11(ctx context.Context, display string) (conn *xgb.Conn, closeConn func(), err error) {
	address, err := parseDisplay(display)
	if err != nil {
		return nil, nil, err
	}
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, address.network, address.address)
	if err != nil {
		return nil, nil, err
	}
	keepOpen := context.AfterFunc(ctx, func() { socket.Close() })
	closeConn = func() { keepOpen(); socket.Close() }
	conn, err = xgb.NewConnNet(&greetedConn{Conn: socket, greeting: greetX11(address)})
	if err != nil {
		closeConn()
		return nil, nil, err
	}
	conn.DefaultScreen = address.screen
	return conn, closeConn, nil
}

// greetedConn replaces the first message, because xgb.NewConnNet does not know the display and
// therefore finds no cookie.
type greetedConn struct {
	net.Conn
	greeting []byte
}

func (c *greetedConn) Write(data []byte) (int, error) {
	greeting := c.greeting
	if greeting == nil {
		return c.Conn.Write(data)
	}
	c.greeting = nil
	if _, err := c.Conn.Write(greeting); err != nil {
		return 0, err
	}
	return len(data), nil
}

// displayAddress is a parsed DISPLAY.
type displayAddress struct {
	network, address string
	host             string // empty for this machine
	number           string
	screen           int
}

// parseDisplay reads the forms :0, host:0.1, tcp/host:0 and /path/of/socket:0.
func parseDisplay(display string) (displayAddress, error) {
	colon := strings.LastIndexByte(display, ':')
	if colon < 0 {
		return displayAddress{}, fmt.Errorf("DISPLAY is %q: want a form such as :0", display)
	}
	number, screenText, _ := strings.Cut(display[colon+1:], ".")
	n, err := strconv.ParseUint(number, 10, 15)
	screen, screenErr := strconv.ParseUint(cmp.Or(screenText, "0"), 10, 15)
	if err != nil || screenErr != nil {
		return displayAddress{}, fmt.Errorf("DISPLAY is %q: want a form such as :0", display)
	}
	a := displayAddress{number: number, screen: int(screen)}
	if strings.HasPrefix(display, "/") {
		a.network, a.address = "unix", display[:colon]+":"+number
		return a, nil
	}
	network, host, found := strings.Cut(display[:colon], "/")
	if !found {
		network, host = "tcp", network
	}
	if host == "" || host == "unix" {
		a.network, a.address = "unix", "/tmp/.X11-unix/X"+number
		return a, nil
	}
	a.network, a.host = network, host
	a.address = net.JoinHostPort(strings.Trim(host, "[]"), strconv.FormatUint(6000+n, 10))
	return a, nil
}

// cookieKind is the kind of authorization that X servers use.
const cookieKind = "MIT-MAGIC-COOKIE-1"

// greetX11 returns the first message to the X server, in little-endian order.
func greetX11(a displayAddress) []byte {
	kind := cookieKind
	cookie := findCookie(a)
	if cookie == nil {
		kind = ""
	}
	greeting := []byte{'l', 0, 11, 0, 0, 0} // version 11.0
	greeting = binary.LittleEndian.AppendUint16(greeting, uint16(len(kind)))
	greeting = binary.LittleEndian.AppendUint16(greeting, uint16(len(cookie)))
	greeting = append(greeting, 0, 0)
	for _, field := range [][]byte{[]byte(kind), cookie} {
		greeting = append(greeting, field...)
		greeting = append(greeting, make([]byte, xgb.Pad(len(field))-len(field))...)
	}
	return greeting
}

// findCookie returns the cookie for a display in the file of XAUTHORITY, or nil if there is none.
func findCookie(a displayAddress) []byte {
	home, _ := os.UserHomeDir() // without one, the file does not exist
	data, err := os.ReadFile(cmp.Or(os.Getenv("XAUTHORITY"), filepath.Join(home, ".Xauthority")))
	if err != nil {
		return nil
	}
	host := a.host
	if host == "" || host == "localhost" {
		host, _ = os.Hostname() // entries for any host need none
	}
	for len(data) > 0 {
		var e authEntry
		if e, data, err = cutAuthEntry(data); err != nil {
			return nil
		}
		const familyLocal, familyWild = 256, 65535
		fitsHost := e.family == familyWild || e.family == familyLocal && e.host == host
		if fitsHost && (e.number == "" || e.number == a.number) && e.kind == cookieKind {
			return e.cookie
		}
	}
	return nil
}

// authEntry is an entry of the file of XAUTHORITY.
type authEntry struct {
	family             uint16
	host, number, kind string
	cookie             []byte
}

// cutAuthEntry reads the first entry and returns the rest. Numbers are big-endian.
func cutAuthEntry(data []byte) (e authEntry, rest []byte, err error) {
	if len(data) < 2 {
		return e, nil, io.ErrUnexpectedEOF
	}
	e.family, data = binary.BigEndian.Uint16(data), data[2:]
	var fields [4][]byte
	for i := range fields {
		if len(data) < 2 {
			return e, nil, io.ErrUnexpectedEOF
		}
		size := int(binary.BigEndian.Uint16(data))
		if data = data[2:]; size > len(data) {
			return e, nil, io.ErrUnexpectedEOF
		}
		fields[i], data = data[:size], data[size:]
	}
	e.host, e.number, e.kind, e.cookie = string(fields[0]), string(fields[1]), string(fields[2]), fields[3]
	return e, data, nil
}

// explainX11 says why an X server gave no picture.
func explainX11(ctx context.Context, display string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the X server %s does not answer in time: %w", display, context.Cause(ctx))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("the X server %s: %w", display, err)
}
