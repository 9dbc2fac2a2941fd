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

// wireLog writes the frames of a command as they pass, without secrets: one line for each, with its
// direction and the time since the first frame. With --json each line is a JSON object. If the
// command uses a server of the running dowel, each line names its leg: from the command to dowel,
// or from dowel to the server.
type wireLog struct {
	out  *term.Screen
	json bool

	mu    sync.Mutex
	start time.Time
	near  wireLeg // of this process
	far   wireLeg // of the running dowel
}

// wireLeg is one connection on the way from the command to the server.
type wireLeg struct {
	from, to     string // names of the two sides; empty if the way has only one leg
	lastReceived []byte // the latest received frame
}

func newWireLog(out *term.Screen, json bool) *wireLog { return &wireLog{out: out, json: json} }

// nameLegs makes each line name its leg.
func (w *wireLog) nameLegs(server string) {
	w.near = wireLeg{from: "command", to: "dowel"}
	w.far = wireLeg{from: "dowel", to: server}
}

// logFrame writes a frame of this process. It implements [transport.Tap].
func (w *wireLog) logFrame(f transport.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeFrame(&w.near, f)
}

// logFarFrame writes a frame between the running dowel and the server, after a number of frames
// that were lost.
func (w *wireLog) logFarFrame(f transport.Frame, missed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if missed > 0 && !w.json {
		fmt.Fprintf(w.out, "(%d messages between %s and %s were too fast to be shown)\n", missed, w.far.from, w.far.to)
	}
	w.writeFrame(&w.far, f)
}

// writeFrame writes a frame of a leg. w.mu is held.
func (w *wireLog) writeFrame(leg *wireLeg, f transport.Frame) {
	if w.start.IsZero() {
		w.start = f.Time
	}
	data := bytes.TrimSpace(f.Data)
	shown := []byte(secretmask.Text(string(data)))
	// A malformed frame arrives twice: first as Received, then as Malformed. If it is not JSON, the
	// second one shows it; else the second one refers to the first.
	if f.Kind == transport.Received {
		leg.lastReceived = append(leg.lastReceived[:0], data...)
		if rawjson.CheckAll(data) != nil {
			return
		}
	}
	again := f.Kind == transport.Malformed && bytes.Equal(data, leg.lastReceived) && rawjson.CheckAll(data) == nil
	if w.json {
		w.writeJSON(leg, f, shown)
		return
	}
	w.writeText(leg, f, shown, again)
}

// writeText writes a frame as text. again means that an earlier line shows the same frame.
func (w *wireLog) writeText(leg *wireLeg, f transport.Frame, data []byte, again bool) {
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
	if leg.from != "" {
		arrow = w.out.Clean(fmt.Sprintf("%7s %s %-7s", leg.from, arrow, leg.to))
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
	Wire   string              `json:"wire"` // sent, received, stray; as the side in From sees it
	From   string              `json:"from,omitempty"`
	To     string              `json:"to,omitempty"`
	MS     float64             `json:"ms"`
	Frame  json.RawMessage     `json:"frame,omitempty"`
	Text   string              `json:"text,omitempty"`
	Header map[string][]string `json:"header,omitempty"`
}

// writeJSON writes a frame as a line of JSON.
func (w *wireLog) writeJSON(leg *wireLeg, f transport.Frame, data []byte) {
	l := wireLine{Wire: f.Kind.String(), From: leg.from, To: leg.to, MS: w.elapsedMS(f), Header: f.Header}
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
