package transport

import (
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Frame is what a tap sees: the bytes as they pass, in the order in which they pass.
type Frame struct {
	Time time.Time
	Kind FrameKind
	// Data is the raw frame, or line. It must not be kept or changed.
	Data []byte
	// Header holds the fields sent along, over HTTP, with secrets masked.
	Header map[string][]string
}

// FrameKind says where a frame was going.
type FrameKind uint8

const (
	Sent     FrameKind = iota // by the side that holds the tap
	Received                  // by the side that holds the tap
	Stray                     // received, and no message: rubbish on a server's stdout, for one
)

func (k FrameKind) String() string { return [...]string{"sent", "received", "stray"}[k] }

// Tap sees every frame of a connection in both directions, handshake and probe included. It may be called concurrently
// and must be quick: the connection waits.
type Tap func(Frame)

// show gives a tap, which may be nil, a frame that has been received. It is called once the frame has been looked at, and
// before anything comes of it.
func (tap Tap) show(kind FrameKind, frame []byte) {
	if tap != nil {
		tap(Frame{Time: time.Now(), Kind: kind, Data: frame})
	}
}

// Show gives a tap, which may be nil, a frame of a transport that carries messages separately, with the header fields sent
// along; secrets among them are masked.
func (tap Tap) Show(kind FrameKind, frame []byte, header map[string][]string) {
	if tap != nil {
		tap(Frame{Time: time.Now(), Kind: kind, Data: frame, Header: masked(header)})
	}
}

// masked hides what may let its holder in: credentials, and session ids but for their beginning.
func masked(header map[string][]string) map[string][]string {
	if header == nil {
		return nil
	}
	shown := maps.Clone(header)
	for name, values := range header {
		switch {
		case name == "Mcp-Session-Id":
			shown[name] = hidden(values, func(v string) string { return v[:min(len(v), 6)] })
		case strings.HasSuffix(name, "Authorization"):
			shown[name] = hidden(values, func(v string) string {
				scheme, _, ok := strings.Cut(v, " ")
				if !ok {
					scheme = ""
				}
				return scheme
			})
		case secret().MatchString(name):
			shown[name] = hidden(values, func(string) string { return "" })
		}
	}
	return shown
}

// secret are the names of fields that people put secrets into.
var secret = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)key|token|secret|auth|cookie|passw|credential|signature|session`)
})

func hidden(values []string, begin func(string) string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = begin(v) + "…"
	}
	return out
}

// tapped is a Conn that shows each frame that is sent.
type tapped struct {
	Conn
	tap Tap
}

func tapSent(conn Conn, tap Tap) Conn {
	if tap == nil {
		return conn
	}
	return &tapped{conn, tap}
}

// TryWrite implements [TryWriter] as far as the Conn does.
func (t *tapped) TryWrite(frame []byte) bool {
	w, ok := t.Conn.(TryWriter)
	if !ok || !w.TryWrite(frame) {
		return false
	}
	t.tap.show(Sent, frame)
	return true
}

func (t *tapped) Write(frame []byte) error {
	t.tap.show(Sent, frame)
	return t.Conn.Write(frame)
}
