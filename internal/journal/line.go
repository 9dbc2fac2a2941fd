package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Kinds of lines.
const (
	bootLine  = "boot"
	frameLine = "frame"
	opLine    = "op"
	gapLine   = "gap"
)

// Line is a line of JSON of the journal, in streams, recordings and exports. K tells which of the
// other fields count: "boot" begins a stream, "frame" and "op" are records, and "gap" stands for
// lost records.
type Line struct {
	Seq  uint64    `json:"seq,omitzero"`
	Time time.Time `json:"t"`
	K    string    `json:"k"`

	Boot    string `json:"boot,omitzero"`
	Version string `json:"version,omitzero"`

	From uint64 `json:"from,omitzero"`
	To   uint64 `json:"to,omitzero"`

	// Of a frame.
	Leg      string              `json:"leg,omitzero"`
	Wire     string              `json:"wire,omitzero"` // sent, received or stray
	Kind     string              `json:"kind,omitzero"`
	Conn     uint64              `json:"conn,omitzero"`
	Revision string              `json:"revision,omitzero"`
	ID       json.RawMessage     `json:"id,omitempty"`
	Size     int                 `json:"size,omitzero"`
	Mark     string              `json:"mark,omitzero"` // of the client, for its call
	Header   map[string][]string `json:"header,omitempty"`
	Frame    json.RawMessage     `json:"frame,omitempty"`
	Text     string              `json:"text,omitzero"` // a frame that is not JSON, or was cut

	// Of a frame or an operation.
	Op     uint64  `json:"op,omitzero"`
	Client string  `json:"client,omitzero"`
	Server string  `json:"server,omitzero"`
	Method string  `json:"method,omitzero"`
	Name   string  `json:"name,omitzero"`
	Status Status  `json:"status,omitzero"`
	MS     float64 `json:"ms,omitzero"`

	// Of an operation.
	Start     time.Time `json:"start,omitzero"`
	Error     string    `json:"error,omitzero"`
	ServerMS  float64   `json:"serverMs,omitzero"`
	UserMS    float64   `json:"userMs,omitzero"`
	DowelMS   float64   `json:"dowelMs,omitzero"`
	Rounds    int       `json:"rounds,omitzero"`
	Calls     int       `json:"calls,omitzero"`
	Questions int       `json:"questions,omitzero"`
	Progress  int       `json:"progress,omitzero"`
	Frames    int       `json:"frames,omitzero"`
	Received  int       `json:"received,omitzero"`
	Sent      int       `json:"sent,omitzero"`
}

// BootLine returns the first line of a stream.
func (r *Recorder) BootLine(version string) Line {
	return Line{K: bootLine, Time: r.started, Boot: r.boot, Version: version}
}

// GapLine returns the line of a gap.
func GapLine(g Gap) Line { return Line{K: gapLine, Time: time.Now(), From: g.From, To: g.To} }

// Gap returns the gap that a line stands for, or the zero Gap.
func (l *Line) Gap() Gap {
	if l.K != gapLine {
		return Gap{}
	}
	return Gap{l.From, l.To}
}

// LineOf returns the line of a record.
func LineOf(r Record) Line {
	if r.Frame != nil {
		return lineOfFrame(r.Seq, r.Frame)
	}
	o := r.Operation
	at := o.End
	if at.IsZero() {
		at = o.Start.Add(o.Took())
	}
	return Line{
		K: opLine, Seq: r.Seq, Time: at, Op: o.ID, Start: o.Start, Client: o.Client, Server: o.Server, Method: o.Method, Name: o.Name,
		Status: o.Status, Error: o.Error, MS: milliseconds(o.Took()), ServerMS: milliseconds(o.InServer), UserMS: milliseconds(o.InUser),
		DowelMS: milliseconds(o.InDowel), Rounds: o.Rounds, Calls: o.Calls, Questions: o.Questions, Progress: o.Progress, Frames: o.Frames,
		Received: o.Received, Sent: o.Sent,
	}
}

func lineOfFrame(seq uint64, f *Frame) Line {
	l := Line{
		K: frameLine, Seq: seq, Time: f.Time, Leg: f.Leg.String(), Wire: wires[f.Direction], Kind: f.Kind.String(), Conn: f.Conn,
		Revision: string(f.Revision), Size: f.Size, Mark: f.Mark, Header: f.Header, Op: f.Operation, Client: f.Client, Server: f.Server,
		Method: f.Method, Name: f.Name, Status: f.Status, MS: milliseconds(f.Took),
	}
	if !f.ID.IsZero() {
		l.ID = f.ID.Append(nil)
	}
	if rawjson.CheckAll(f.Body) == nil {
		l.Frame = f.Body
	} else {
		l.Text = strings.ToValidUTF8(string(f.Body), "\uFFFD")
	}
	return l
}

var wires = [...]string{framesink.Sent: "sent", framesink.Received: "received", framesink.Malformed: "stray"}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Record returns the record of a line. ok is false for lines that are not records.
func (l *Line) Record() (r Record, ok bool) {
	switch l.K {
	case frameLine:
		return Record{Seq: l.Seq, Frame: l.frame()}, true
	case opLine:
		o := &Operation{
			ID: l.Op, Start: l.Start, Client: l.Client, Server: l.Server, Method: l.Method, Name: l.Name, Status: l.Status, Error: l.Error,
			InServer: duration(l.ServerMS), InUser: duration(l.UserMS), InDowel: duration(l.DowelMS), Rounds: l.Rounds, Calls: l.Calls,
			Questions: l.Questions, Progress: l.Progress, Frames: l.Frames, Received: l.Received, Sent: l.Sent,
		}
		if !o.IsOpen() {
			o.End = l.Time
		}
		return Record{Seq: l.Seq, Operation: o}, true
	}
	return Record{}, false
}

func (l *Line) frame() *Frame {
	f := &Frame{
		Time: l.Time, Conn: l.Conn, Client: l.Client, Server: l.Server, Revision: mcp.Revision(l.Revision), Method: l.Method, Name: l.Name,
		Operation: l.Op, Mark: l.Mark, Size: l.Size, Header: l.Header, Status: l.Status, Took: duration(l.MS), Body: l.Frame,
	}
	if l.Frame == nil {
		f.Body = []byte(l.Text)
	}
	if l.Leg == ServerLeg.String() {
		f.Leg = ServerLeg
	}
	f.ID, _ = jsonrpc.ParseID(l.ID) // absent in notifications
	for d, word := range wires {
		if word == l.Wire {
			f.Direction = framesink.Direction(d)
		}
	}
	for k := Request; k <= Stray; k++ {
		if k.String() == l.Kind {
			f.Kind = k
		}
	}
	return f
}

// ParseLine parses a line of a recording. The first line of a recording is number 1.
func ParseLine(text []byte, number int) (l Line, err error) {
	if err := json.Unmarshal(text, &l); err != nil || l.K == "" {
		return l, fmt.Errorf("line %d is not from a recording of dowel: want JSON with a member k", number)
	}
	return l, nil
}
