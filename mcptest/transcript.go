package mcptest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/direct"
	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/wiretest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

var update = flag.Bool("update-transcripts", false, "write the answers of the servers into the transcripts")

// Transcript plays the client's lines of a golden transcript to a new handler, and compares the
// server's answers with the expected lines. A transcript is a text file:
//
//	# a comment
//	> {"jsonrpc":"2.0","id":1,"method":"ping"}     the client sends this, byte for byte
//	< {"jsonrpc":"2.0","id":1,"result":{}}         the server must send this next
//	@wait 1s                                       time passes
//	@lenient schema meta                           switches off these checks for the client's lines
//
// Expected lines are compared as JSON, in order; a line too many or too few fails the test. A
// string "${name}" in an expected line matches any value; a later use of the name, in a line of
// either side, means the value that it matched first. Messages of both sides are also checked as a
// tap checks them.
//
// The handler runs in a [testing/synctest] bubble, whose clock advances only at @wait. With the
// flag -update-transcripts, the test writes the server's answers into the file; names stay where
// they match. opts configure the server's end of the connection; several are
// merged, and the last one that sets a field wins.
//
// A transcript is played twice, each time to a new handler. The first time, frames go through
// reading loops, as over a wire. The second time, requests and responses go directly, as between a
// client and a server in one process. If the first run fails, Transcript returns.
func Transcript(t *testing.T, file string, handler func() mcp.Handler, opts ...transport.ServerOptions) {
	t.Helper()
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(script), "\n"), "\n")
	p := &player{file: filepath.Base(file), opts: options.Merge(opts)}
	p.playIn(t, lines, handler)
	switch {
	case t.Failed():
	case *update:
		if err := os.WriteFile(file, []byte(strings.Join(p.out, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		p := &player{file: "in process: " + filepath.Base(file), opts: options.Merge(opts), isDirect: true}
		p.playIn(t, lines, handler)
	}
}

// player plays one transcript.
type player struct {
	t     *testing.T
	file  string
	opts  transport.ServerOptions
	conn  transport.Conn
	check *wiretest.Checker
	names map[string]string // values of "${name}", as raw JSON
	got   chan []byte       // frames of the server
	out   []string          // the lines for -update-transcripts

	isDirect bool           // frames are delivered
	sending  sync.WaitGroup // counts the goroutines that deliver frames
}

// playIn plays the lines in a bubble of their own.
func (p *player) playIn(t *testing.T, lines []string, handler func() mcp.Handler) {
	t.Helper()
	p.names = map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		p.t = t // its context belongs to the bubble
		p.playLines(lines, handler())
	})
}

func (p *player) playLines(lines []string, h mcp.Handler) {
	clientEnd, serverEnd := memory.Pipe()
	p.conn, p.got = clientEnd, make(chan []byte, 1024)
	if p.isDirect {
		clientEnd.(direct.Conn).SetReceiver(p)
	}
	served, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		_ = overconn.Serve(p.t.Context(), serverEnd, h, p.opts)
	}()
	go func() {
		defer close(read)
		for {
			frame, err := clientEnd.Read()
			if err != nil {
				return
			}
			p.got <- frame
		}
	}()
	p.check = p.newChecker(lines)
	synctest.Wait() // until both ends read
	for i := 0; i < len(lines); {
		i += p.playStep(lines[i:], i+1)
	}
	clientEnd.Close()
	<-served
	<-read
	p.sending.Wait()
}

// newChecker returns a checker without the checks of the transcript's @lenient lines.
func (p *player) newChecker(lines []string) *wiretest.Checker {
	var o wiretest.Options
	for _, line := range lines {
		if names, ok := strings.CutPrefix(line, "@lenient "); ok {
			for _, name := range strings.Fields(names) {
				o.OffClient = append(o.OffClient, wiretest.Check(name))
			}
		}
	}
	if err := o.Validate(); err != nil {
		p.t.Fatalf("%s: @lenient: %v", p.file, err)
	}
	return wiretest.NewChecker(o)
}

// playStep plays the first of lines with the expected lines that follow it, and returns their
// number. number is the line number of the first.
func (p *player) playStep(lines []string, number int) int {
	line := lines[0]
	if frame, ok := strings.CutPrefix(line, "> "); ok {
		p.out = append(p.out, line)
		p.sendFrame(frame, number)
	} else if d, ok := strings.CutPrefix(line, "@wait "); ok {
		p.out = append(p.out, line)
		p.advanceClock(d, number)
	} else if strings.HasPrefix(line, "< ") {
		p.t.Errorf("%s:%d: the server cannot answer here: write a > or @wait line first", p.file, number)
		return 1
	} else {
		p.out = append(p.out, line)
		return 1
	}
	n := 1
	for n < len(lines) && strings.HasPrefix(lines[n], "< ") {
		n++
	}
	p.compareAnswers(lines[1:n], number+1)
	return n
}

func (p *player) sendFrame(frame string, number int) {
	for name, value := range p.names {
		frame = strings.ReplaceAll(frame, `"${`+name+`}"`, value)
	}
	for _, err := range p.check.Frame(wiretest.Client, []byte(frame)) {
		p.t.Errorf("%s:%d: the client: %v", p.file, number, err)
	}
	if p.isDirect {
		p.sending.Go(func() { p.deliverFrame([]byte(frame), number) }) // which waits for a handler
	} else if err := p.conn.Write([]byte(frame)); err != nil {
		p.t.Fatalf("%s:%d: %v", p.file, number, err)
	}
	synctest.Wait()
}

// deliverFrame sends a frame as a client does to a server in the same process.
func (p *player) deliverFrame(frame []byte, number int) {
	if p.conn.(direct.Conn).Deliver(frame, direct.Sending{Lend: true}) {
		return
	}
	if err := p.conn.Write(frame); err != nil {
		p.t.Errorf("%s:%d: %v", p.file, number, err)
	}
}

// Receive implements [direct.Receiver].
func (p *player) Receive(frame []byte, _ direct.Sending) (direct.Work, bool) {
	p.got <- frame
	return nil, true
}

func (p *player) advanceClock(text string, number int) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		p.t.Fatalf("%s:%d: %v", p.file, number, err)
	}
	time.Sleep(d)
	synctest.Wait()
}

// compareAnswers compares the frames that the server has sent with the expected lines.
func (p *player) compareAnswers(want []string, number int) {
	for i := 0; ; i++ {
		var frame []byte
		select {
		case frame = <-p.got:
		default:
		}
		switch {
		case frame == nil && i >= len(want):
			return
		case frame == nil:
			if !*update {
				p.t.Errorf("%s:%d: the server has not sent:\n\t%s", p.file, number+i, want[i])
			}
			return
		}
		for _, err := range p.check.Frame(wiretest.Server, frame) {
			p.t.Errorf("%s:%d: the server: %v", p.file, number+i, err)
		}
		p.compareFrame(want, i, number, frame)
	}
}

func (p *player) compareFrame(want []string, i, number int, frame []byte) {
	expected := ""
	if i < len(want) {
		expected = strings.TrimPrefix(want[i], "< ")
	}
	ok := p.matchFrame(expected, frame)
	switch {
	case *update && ok:
		p.out = append(p.out, "< "+expected)
	case *update:
		p.out = append(p.out, "< "+string(frame))
	case expected == "":
		p.t.Errorf("%s:%d: the server has sent, unexpectedly:\n\t< %s", p.file, number+i, frame)
	case !ok:
		p.t.Errorf("%s:%d: expected\n\t< %s\ngot\n\t< %s", p.file, number+i, expected, frame)
	}
}

// matchFrame compares two frames as JSON, and binds the names in expected.
func (p *player) matchFrame(expected string, frame []byte) bool {
	if expected == "" {
		return false
	}
	want, err := decodeJSON([]byte(expected))
	if err != nil {
		return false
	}
	got, err := decodeJSON(frame)
	return err == nil && p.matchValue(want, got)
}

func (p *player) matchValue(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		return ok && len(got) == len(want) && p.matchMembers(want, got)
	case []any:
		got, ok := got.([]any)
		return ok && slices.EqualFunc(want, got, p.matchValue)
	case string:
		if name, ok := parsePlaceholder(want); ok {
			return p.bindName(name, got)
		}
	}
	return fmt.Sprint(want) == fmt.Sprint(got) && fmt.Sprintf("%T", want) == fmt.Sprintf("%T", got)
}

func (p *player) matchMembers(want, got map[string]any) bool {
	for name, value := range want {
		other, ok := got[name]
		if !ok || !p.matchValue(value, other) {
			return false
		}
	}
	return true
}

// parsePlaceholder returns the name in "${name}".
func parsePlaceholder(s string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(s, "${"); !ok {
		return "", false
	}
	return strings.CutSuffix(name, "}")
}

// bindName gives a new name its value. For a known name, it reports whether got is that value.
func (p *player) bindName(name string, got any) bool {
	raw, err := encodeJSON(got)
	if err != nil {
		return false
	}
	if first, ok := p.names[name]; ok {
		return first == string(bytes.TrimSpace(raw))
	}
	p.names[name] = string(bytes.TrimSpace(raw))
	return true
}

// decodeJSON decodes one value and keeps the text of numbers.
func decodeJSON(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
