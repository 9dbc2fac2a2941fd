package connect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/journal/filter"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/transport"
)

// wireAll is the value of --wire without a filter.
const wireAll = "all"

// wireLog writes the frames of a command as they pass, without secrets: one line for each, with its
// direction and the time since the first frame. With --json each line is a JSON object. If the
// command uses a server of the running dowel, each line names its leg: from the command to dowel,
// or from dowel to the server. A filter chooses frames as in dowel wire.
type wireLog struct {
	out    *term.Screen
	json   bool
	server string

	mu     sync.Mutex
	filter *frameFilter // nil without a filter
	start  time.Time
	near   wireLeg // of this process
	far    wireLeg // of the running dowel
}

// wireLeg is one connection on the way from the command to the server.
type wireLeg struct {
	from, to     string // names of the two sides; empty if the way has only one leg
	lastReceived []byte // the latest received frame
}

// newWireLog returns a log of the frames that a filter accepts. The error is a usage error.
func newWireLog(out *term.Screen, json bool, text, server string) (*wireLog, error) {
	w := &wireLog{out: out, json: json, server: server}
	if on, err := strconv.ParseBool(text); text == wireAll || err == nil && on {
		return w, nil
	}
	accept, err := filter.Parse(text, time.Now())
	if err != nil {
		return nil, exit.Usagef("--wire=%s: %w", text, err)
	}
	w.filter = newFrameFilter(accept, server)
	return w, nil
}

// nameLegs makes each line name its leg.
func (w *wireLog) nameLegs() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.near = wireLeg{from: "command", to: "dowel"}
	w.far = wireLeg{from: "dowel", to: w.server}
}

// logFrame writes a frame of this process. It implements [transport.Tap].
func (w *wireLog) logFrame(f transport.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.filter == nil || w.filter.acceptOwn(f, w.near.from != "") {
		w.writeFrame(&w.near, f)
	}
}

// logFarFrame writes a frame between the running dowel and the server, or that records of the
// journal are lost.
func (w *wireLog) logFarFrame(f *journal.Frame, lost journal.Gap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := lost.Len(); n > 0 && !w.json {
		fmt.Fprintf(w.out, "(%d messages of dowel were too fast to be shown)\n", n)
	}
	if f != nil && (w.filter == nil || w.filter.accept.Match(filter.Item{Frame: f})) {
		w.writeFrame(&w.far, transport.Frame{Time: f.Time, Kind: transport.FrameKind(f.Direction), Data: f.Body, Header: f.Header})
	}
}

// frameFilter applies a filter to frames of this process. A journal of its own finds the facts that
// a frame does not say, such as the method of a response.
type frameFilter struct {
	accept   filter.Filter
	recorder *journal.Recorder
	conn     *journal.Conn
	cursor   *journal.Cursor
}

func newFrameFilter(accept filter.Filter, server string) *frameFilter {
	const kept = 64 << 10 // a frame is read at once
	r := journal.New(journal.Options{Bytes: kept})
	return &frameFilter{accept, r, r.ServerConn(server), r.Cursor(0)}
}

// acceptOwn reports whether the filter accepts a frame. toDowel says that the frame is between this
// process and the running dowel: it is on dowel's leg to clients then, and dowel sees the other
// direction.
func (a *frameFilter) acceptOwn(f transport.Frame, toDowel bool) (accepted bool) {
	a.conn.AddFrame(framesink.Direction(f.Kind), f.Data, f.Header)
	for _, newest := a.recorder.Bounds(); a.cursor.Position() < newest; {
		records, _, err := a.cursor.Next(context.Background(), 1)
		if err != nil {
			return false
		}
		for _, r := range records {
			if r.Frame == nil {
				continue
			}
			seen := *r.Frame
			if toDowel {
				seen.Leg = journal.ClientLeg
				switch seen.Direction {
				case framesink.Sent:
					seen.Direction = framesink.Received
				case framesink.Received:
					seen.Direction = framesink.Sent
				}
			}
			accepted = a.accept.Match(filter.Item{Frame: &seen})
		}
	}
	return accepted
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
