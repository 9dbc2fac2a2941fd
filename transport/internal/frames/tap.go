package frames

import (
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/transport"
)

// Show calls tap, unless it is nil, with a frame and the header fields that came or go with it.
// Secrets in the header are masked. A received frame is shown after it has been parsed and before
// it has any effect.
func Show(tap transport.Tap, kind transport.FrameKind, frame []byte, header map[string][]string) {
	if tap != nil {
		tap(transport.Frame{Time: time.Now(), Kind: kind, Data: frame, Header: maskSecrets(header)})
	}
}

// maskSecrets returns a copy of header in which credentials are replaced by "…". Session ids keep
// their first six characters, and Authorization keeps its scheme.
func maskSecrets(header map[string][]string) map[string][]string {
	if header == nil {
		return nil
	}
	masked := maps.Clone(header)
	for name, values := range header {
		switch {
		case name == "Mcp-Session-Id":
			masked[name] = maskValues(values, func(v string) string { return v[:min(len(v), 6)] })
		case strings.HasSuffix(name, "Authorization"):
			masked[name] = maskValues(values, func(v string) string {
				scheme, _, ok := strings.Cut(v, " ")
				if !ok {
					scheme = ""
				}
				return scheme
			})
		case secretName().MatchString(name):
			masked[name] = maskValues(values, func(string) string { return "" })
		}
	}
	return masked
}

// secretName matches the names of header fields that often hold a secret.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)key|token|secret|auth|cookie|passw|credential|signature|session`)
})

func maskValues(values []string, visiblePart func(string) string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = visiblePart(v) + "…"
	}
	return out
}

// tappedConn is a Conn that shows each frame before it is written.
type tappedConn struct {
	transport.Conn
	tap transport.Tap
}

// TapSent returns a Conn that shows every frame to tap that is written to conn. It returns conn
// itself if tap is nil.
func TapSent(conn transport.Conn, tap transport.Tap) transport.Conn {
	if tap == nil {
		return conn
	}
	return &tappedConn{conn, tap}
}

// TryWrite implements [transport.TryWriter]. It reports false if the Conn does not implement it.
func (t *tappedConn) TryWrite(frame []byte) bool {
	w, ok := t.Conn.(transport.TryWriter)
	if !ok || !w.TryWrite(frame) {
		return false
	}
	Show(t.tap, transport.Sent, frame, nil)
	return true
}

// HalfOpen implements [transport.HalfOpener]. It reports false if the Conn does not implement it.
func (t *tappedConn) HalfOpen() bool {
	h, ok := t.Conn.(transport.HalfOpener)
	return ok && h.HalfOpen()
}

func (t *tappedConn) Write(frame []byte) error {
	Show(t.tap, transport.Sent, frame, nil)
	return t.Conn.Write(frame)
}
