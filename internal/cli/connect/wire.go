package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/transport"
)

// wireLog writes the frames of a connection as they pass, without secrets: one line for each, with
// its direction and the time since the first frame. With --json each line is a JSON object.
type wireLog struct {
	out  *term.Screen
	json bool

	mu           sync.Mutex
	start        time.Time
	lastReceived []byte // the latest received frame
}

func newWireLog(out *term.Screen, json bool) *wireLog { return &wireLog{out: out, json: json} }

// logFrame implements [transport.Tap].
func (w *wireLog) logFrame(f transport.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.start.IsZero() {
		w.start = f.Time
	}
	data := bytes.TrimSpace(f.Data)
	shown := []byte(secretmask.Text(string(data)))
	// A malformed frame arrives twice: first as Received, then as Malformed. If it is not JSON, the
	// second one shows it; else the second one refers to the first.
	if f.Kind == transport.Received {
		w.lastReceived = append(w.lastReceived[:0], data...)
		if rawjson.CheckAll(data) != nil {
			return
		}
	}
	again := f.Kind == transport.Malformed && bytes.Equal(data, w.lastReceived) && rawjson.CheckAll(data) == nil
	if w.json {
		w.writeJSON(f, shown)
		return
	}
	w.writeText(f, shown, again)
}

// writeText writes a frame as text. again means that the line before shows the same frame.
func (w *wireLog) writeText(f transport.Frame, data []byte, again bool) {
	arrow, note := "→", ""
	paint := w.out.Cyan
	switch f.Kind {
	case transport.Received:
		arrow, paint = "←", w.out.Green
	case transport.Malformed:
		arrow, note, paint = "✗", "no message: ", w.out.Red
		if again {
			note, data = "no message (the line above)", nil
		}
	}
	fmt.Fprintf(w.out, "%s %s %s%s\n", paint(arrow), w.out.Dim(fmt.Sprintf("%8.1fms", w.elapsedMS(f))), paint(note), w.out.Clean(string(data)))
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		for _, value := range f.Header[name] {
			fmt.Fprintf(w.out, "             %s\n", w.out.Dim(w.out.Clean(name+": "+value)))
		}
	}
}

// wireLine is the JSON form of a frame. A frame that is not JSON is in Text.
type wireLine struct {
	Wire   string              `json:"wire"` // sent, received, stray
	MS     float64             `json:"ms"`
	Frame  json.RawMessage     `json:"frame,omitempty"`
	Text   string              `json:"text,omitempty"`
	Header map[string][]string `json:"header,omitempty"`
}

// writeJSON writes a frame as a line of JSON.
func (w *wireLog) writeJSON(f transport.Frame, data []byte) {
	l := wireLine{Wire: f.Kind.String(), MS: w.elapsedMS(f), Header: f.Header}
	if rawjson.CheckAll(data) == nil {
		l.Frame = data
	} else {
		l.Text = string(data)
	}
	factory.WriteJSONLine(w.out, l)
}

// elapsedMS returns the milliseconds between the first frame and f.
func (w *wireLog) elapsedMS(f transport.Frame) float64 {
	return float64(f.Time.Sub(w.start).Microseconds()) / 1000
}
