// Package transporttest holds what the tests of both machines need: a Conn that loses frames, and a
// comparison of JSON with placeholders.
package transporttest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/transport"
)

// LossyConn is a Conn whose Read returns a [transport.FrameError] for each frame that begins with
// "lose". The id of the lost frame may follow, and then "method" or "response" for its kind.
type LossyConn struct{ transport.Conn }

// Read implements [transport.Conn].
func (l *LossyConn) Read() ([]byte, error) {
	frame, err := l.Conn.Read()
	id, lose := strings.CutPrefix(string(frame), "lose")
	if err != nil || !lose {
		return frame, err
	}
	lost := &transport.FrameError{Reason: "too long"}
	id, lost.Method = strings.CutSuffix(id, " method")
	id, lost.Response = strings.CutSuffix(id, " response")
	lost.ID, _ = jsonrpc.ParseID([]byte(strings.TrimSpace(id)))
	return nil, fmt.Errorf("wrapped: %w", lost)
}

// FailingConn is a Conn whose Read returns the first error that is sent to Fail.
type FailingConn struct {
	transport.Conn
	Fail chan error
}

// Read implements [transport.Conn].
func (f *FailingConn) Read() ([]byte, error) {
	type read struct {
		frame []byte
		err   error
	}
	got := make(chan read, 1)
	go func() {
		frame, err := f.Conn.Read()
		got <- read{frame, err}
	}()
	select {
	case r := <-got:
		return r.frame, r.err
	case err := <-f.Fail:
		return nil, err
	}
}

var placeholder = regexp.MustCompile(`^\$\{.*\}$`)

// MatchJSON reports whether frame is equal to want as JSON. A string "${name}" in want matches any
// value.
func MatchJSON(want string, frame []byte) bool {
	var a, b any
	if json.Unmarshal([]byte(want), &a) != nil || json.Unmarshal(frame, &b) != nil {
		return false
	}
	return matchValue(a, b)
}

// matchValue compares two decoded JSON values.
func matchValue(want, got any) bool {
	switch want := want.(type) {
	case string:
		return placeholder.MatchString(want) || want == got
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok || len(got) != len(want) {
			return false
		}
		for k, v := range want {
			if other, ok := got[k]; !ok || !matchValue(v, other) {
				return false
			}
		}
		return true
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return false
		}
		for i := range want {
			if !matchValue(want[i], got[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}
