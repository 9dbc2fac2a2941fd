package mcptest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest/wire"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

var update = flag.Bool("update-transcripts", false, "write what servers answer into the transcripts")

// Transcript plays the client's lines of a golden transcript to a handler and compares what comes back, line by line.
// A transcript is a text file:
//
//	# a comment
//	> {"jsonrpc":"2.0","id":1,"method":"ping"}     sent by the client, byte for byte
//	< {"jsonrpc":"2.0","id":1,"result":{}}         expected from the server, in this order, and nothing else
//	@wait 1s                                       lets time pass
//	@lenient schema meta                           switches off checks of package wire for the client's lines
//
// A string "${name}" in an expected line stands for any value; the same name in a later line, of either side, stands for
// the value that it had. Time stands still but for @wait. Every line of the server is also checked against the schema of
// its revision. With -update-transcripts the expected lines are written instead, keeping names.
func Transcript(t *testing.T, file string, handler func() mcp.Handler, opts ...transport.ServerOptions) {
	t.Helper()
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &play{t: t, names: map[string]string{}, file: filepath.Base(file)}
	if len(opts) > 0 {
		p.opts = opts[0]
	}
	lines := strings.Split(strings.TrimRight(string(script), "\n"), "\n")
	synctest.Test(t, func(t *testing.T) {
		p.t = t // whose context belongs to the bubble
		p.run(lines, handler())
	})
	if *update && !t.Failed() {
		if err := os.WriteFile(file, []byte(strings.Join(p.out, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// play is one run of a transcript.
type play struct {
	t     *testing.T
	file  string
	opts  transport.ServerOptions
	conn  transport.Conn
	check *wire.Checker
	names map[string]string // values of "${name}", as raw JSON
	got   chan []byte
	out   []string // the transcript as it should be
}

func (p *play) run(lines []string, h mcp.Handler) {
	near, far := memory.Pipe()
	p.conn, p.got = near, make(chan []byte, 1024)
	served, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		_ = overconn.Serve(p.t.Context(), far, h, p.opts)
	}()
	go func() {
		defer close(read)
		for {
			frame, err := near.Read()
			if err != nil {
				return
			}
			p.got <- frame
		}
	}()
	p.check = wire.NewChecker(lenient(lines))
	for i := 0; i < len(lines); {
		i += p.step(lines[i:], i+1)
	}
	near.Close()
	<-served
	<-read
}

func lenient(lines []string) (o wire.Options) {
	for _, line := range lines {
		if names, ok := strings.CutPrefix(line, "@lenient "); ok {
			for _, name := range strings.Fields(names) {
				o.OffClient = append(o.OffClient, wire.Check(name))
			}
		}
	}
	return o
}

// step plays one line, or the expected lines that begin here, and returns how many lines that was.
func (p *play) step(lines []string, number int) int {
	line := lines[0]
	if frame, ok := strings.CutPrefix(line, "> "); ok {
		p.out = append(p.out, line)
		p.send(frame, number)
	} else if d, ok := strings.CutPrefix(line, "@wait "); ok {
		p.out = append(p.out, line)
		p.wait(d, number)
	} else if strings.HasPrefix(line, "< ") {
		p.t.Errorf("%s:%d: nothing was sent, and no time has passed, that this could answer", p.file, number)
		return 1
	} else {
		p.out = append(p.out, line)
		return 1
	}
	n := 1
	for n < len(lines) && strings.HasPrefix(lines[n], "< ") {
		n++
	}
	p.compare(lines[1:n], number+1)
	return n
}

func (p *play) send(frame string, number int) {
	for name, value := range p.names {
		frame = strings.ReplaceAll(frame, `"${`+name+`}"`, value)
	}
	for _, err := range p.check.Frame(wire.Client, []byte(frame)) {
		p.t.Errorf("%s:%d: the client: %v", p.file, number, err)
	}
	if err := p.conn.Write([]byte(frame)); err != nil {
		p.t.Fatalf("%s:%d: %v", p.file, number, err)
	}
	synctest.Wait()
}

func (p *play) wait(text string, number int) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		p.t.Fatalf("%s:%d: %v", p.file, number, err)
	}
	time.Sleep(d)
	synctest.Wait()
}

// compare holds what the server has sent against the expected lines.
func (p *play) compare(want []string, number int) {
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
				p.t.Errorf("%s:%d: expected, and not sent:\n\t%s", p.file, number+i, want[i])
			}
			return
		}
		for _, err := range p.check.Frame(wire.Server, frame) {
			p.t.Errorf("%s:%d: the server: %v", p.file, number+i, err)
		}
		p.match(want, i, number, frame)
	}
}

func (p *play) match(want []string, i, number int, frame []byte) {
	expected := ""
	if i < len(want) {
		expected = strings.TrimPrefix(want[i], "< ")
	}
	ok := p.equal(expected, frame)
	switch {
	case *update && ok:
		p.out = append(p.out, "< "+expected)
	case *update:
		p.out = append(p.out, "< "+string(frame))
	case expected == "":
		p.t.Errorf("%s:%d: sent, and not expected:\n\t< %s", p.file, number+i, frame)
	case !ok:
		p.t.Errorf("%s:%d: expected\n\t< %s\ngot\n\t< %s", p.file, number+i, expected, frame)
	}
}

// equal compares two frames as JSON, and keeps what names stand for.
func (p *play) equal(expected string, frame []byte) bool {
	if expected == "" {
		return false
	}
	want, err := decodeAny([]byte(expected))
	if err != nil {
		return false
	}
	got, err := decodeAny(frame)
	return err == nil && p.same(want, got)
}

func (p *play) same(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		return ok && len(got) == len(want) && p.sameMembers(want, got)
	case []any:
		got, ok := got.([]any)
		return ok && slices.EqualFunc(want, got, p.same)
	case string:
		if name, ok := placeholder(want); ok {
			return p.bind(name, got)
		}
	}
	return fmt.Sprint(want) == fmt.Sprint(got) && fmt.Sprintf("%T", want) == fmt.Sprintf("%T", got)
}

func (p *play) sameMembers(want, got map[string]any) bool {
	for name, value := range want {
		other, ok := got[name]
		if !ok || !p.same(value, other) {
			return false
		}
	}
	return true
}

func placeholder(s string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(s, "${"); !ok {
		return "", false
	}
	return strings.CutSuffix(name, "}")
}

// bind gives a name its first value, and compares later ones with that.
func (p *play) bind(name string, got any) bool {
	raw, err := encodeAny(got)
	if err != nil {
		return false
	}
	if first, ok := p.names[name]; ok {
		return first == string(bytes.TrimSpace(raw))
	}
	p.names[name] = string(bytes.TrimSpace(raw))
	return true
}
