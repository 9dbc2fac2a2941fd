package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/transport"
)

// wire shows the frames of a connection as they pass: one line for each, with its direction and the time since the
// first. It has the form of JSON lines where a program reads it.
type wire struct {
	out  *screen
	json bool

	mu    sync.Mutex
	start time.Time
	last  []byte // the frame that was received last
}

func newWire(out *screen, json bool) *wire { return &wire{out: out, json: json} }

// tap is a [transport.Tap].
func (w *wire) tap(f transport.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.start.IsZero() {
		w.start = f.Time
	}
	data := bytes.TrimSpace(f.Data)
	// What is no message comes twice: as it is received, and as it is found to be none.
	if f.Kind == transport.Received {
		w.last = append(w.last[:0], data...)
		if rawjson.CheckAll(data) != nil {
			return
		}
	}
	again := f.Kind == transport.Malformed && bytes.Equal(data, w.last) && rawjson.CheckAll(data) == nil
	if w.json {
		w.object(f, data)
		return
	}
	w.line(f, data, again)
}

func (w *wire) line(f transport.Frame, data []byte, again bool) {
	arrow, note := "→", ""
	paint := w.out.cyan
	switch f.Kind {
	case transport.Received:
		arrow, paint = "←", w.out.green
	case transport.Malformed:
		arrow, note, paint = "✗", "no message: ", w.out.red
		if again {
			note, data = "no message (the line above)", nil
		}
	}
	fmt.Fprintf(w.out, "%s %s %s%s\n", paint(arrow), w.out.dim(fmt.Sprintf("%8.1fms", w.since(f))), paint(note), w.out.clean(string(data)))
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		for _, value := range f.Header[name] {
			fmt.Fprintf(w.out, "             %s\n", w.out.dim(w.out.clean(name+": "+value)))
		}
	}
}

// wireLine is a frame as a program reads it. A frame that is no JSON is text.
type wireLine struct {
	Wire   string              `json:"wire"` // sent, received, stray
	MS     float64             `json:"ms"`
	Frame  json.RawMessage     `json:"frame,omitempty"`
	Text   string              `json:"text,omitempty"`
	Header map[string][]string `json:"header,omitempty"`
}

func (w *wire) object(f transport.Frame, data []byte) {
	l := wireLine{Wire: f.Kind.String(), MS: w.since(f), Header: f.Header}
	if rawjson.CheckAll(data) == nil {
		l.Frame = data
	} else {
		l.Text = string(data)
	}
	encodeLine(w.out, l)
}

func (w *wire) since(f transport.Frame) float64 {
	return float64(f.Time.Sub(w.start).Microseconds()) / 1000
}

// encodeLine writes a value as one line of JSON.
func encodeLine(to io.Writer, value any) {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // it is made of what can be encoded, and the stream reports its own failure
}
