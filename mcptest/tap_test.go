package mcptest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/transport"
)

// failures is a test that remembers what it fails for.
type failures struct {
	testing.TB
	said []string
}

func (f *failures) Error(args ...any) { f.said = append(f.said, fmt.Sprint(args...)) }

func TestTapsJudge(t *testing.T) {
	const (
		initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
		answer     = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
		bad        = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}`
		badAnswer  = `{"jsonrpc":"2.0","id":2,"result":{}}`
	)
	for _, tt := range []struct {
		name string
		tap  func(testing.TB) transport.Tap
		// What the tap's side sends begins with >, what it receives with <, strays with ?.
		frames []string
		want   string // the rules that are broken, each with who broke it
	}{
		{"client", func(t testing.TB) transport.Tap { return ClientTap(t) }, []string{">" + initialize, "<" + answer, ">" + bad, "<" + badAnswer, "?x"}, "schema: client|schema: server"},
		{"server", func(t testing.TB) transport.Tap { return ServerTap(t) }, []string{"<" + initialize, ">" + answer, "<" + bad, ">" + badAnswer, "?x"}, "schema: client|schema: server"},
		{"client, sent", func(t testing.TB) transport.Tap { return ClientSentTap(t) }, []string{">" + initialize, "<" + answer, ">" + bad, "<" + badAnswer, "?x"}, "schema: client"},
		{"server, sent", func(t testing.TB) transport.Tap { return ServerSentTap(t) }, []string{"<" + initialize, ">" + answer, "<" + bad, ">" + badAnswer, "?x"}, "schema: server"},
		{"an answer to no message", func(t testing.TB) transport.Tap { return ServerSentTap(t) }, []string{`?{"id":7}`, `>{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"no"}}`}, ""},
		{"one connection after the other", func(t testing.TB) transport.Tap { return ClientTap(t) }, []string{">" + initialize, "<" + answer, ">" + initialize, "<" + answer}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &failures{TB: t}
			tap := tt.tap(f)
			for _, frame := range tt.frames {
				kind := map[byte]transport.FrameKind{'>': transport.Sent, '<': transport.Received, '?': transport.Malformed}[frame[0]]
				tap(transport.Frame{Kind: kind, Data: []byte(frame[1:])})
			}
			var got []string
			for _, said := range f.said {
				rule, rest, _ := strings.Cut(said, ": ")
				who, _, _ := strings.Cut(rest, " ")
				got = append(got, rule+": "+who)
			}
			if got := strings.Join(got, "|"); got != tt.want {
				t.Errorf("broken: %s\nwant %s", got, tt.want)
			}
		})
	}
}
