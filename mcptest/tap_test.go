package mcptest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// fakeTB records the errors that a tap reports.
type fakeTB struct {
	testing.TB
	errors []string
	fatal  string
}

func (f *fakeTB) Helper()                      {}
func (f *fakeTB) Error(args ...any)            { f.errors = append(f.errors, fmt.Sprint(args...)) }
func (f *fakeTB) Fatalf(s string, args ...any) { f.fatal = fmt.Sprintf(s, args...); panic(f) }

// Options switch checks off; a wrong one fails the test at once.
func TestTapOptions(t *testing.T) {
	t.Parallel()
	const bad = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}`
	for _, tt := range []struct {
		option TapOption
		want   int // errors for a bad request of the client
	}{
		{TapOption{}, 2},
		{WithoutChecks("schema"), 1},
		{WithoutChecks("client:schema", "client:meta"), 0},
		{WithoutChecks("server:schema", "server:meta"), 2},
		{withLegacyRevision(mcp.Revision20250618), 1},
		{withResultTypes("task"), 2},
	} {
		f := &fakeTB{TB: t}
		ClientTap(f, tt.option)(transport.Frame{Kind: transport.Sent, Data: []byte(bad)})
		if len(f.errors) != tt.want {
			t.Errorf("got %d errors, want %d: %v", len(f.errors), tt.want, f.errors)
		}
	}
	for _, wrong := range []TapOption{WithoutChecks("shema"), WithoutChecks("server:shema"), withLegacyRevision(mcp.Revision20260728)} {
		f := &fakeTB{TB: t}
		func() {
			defer func() { recover() }()
			ClientTap(f, wrong)
		}()
		if f.fatal == "" {
			t.Error("a wrong option is accepted")
		}
	}
}

func TestTapsReport(t *testing.T) {
	const (
		initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
		answer     = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
		bad        = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}`
		badAnswer  = `{"jsonrpc":"2.0","id":2,"result":{}}`
	)
	for _, tt := range []struct {
		name string
		tap  func(testing.TB) transport.Tap
		// A frame that the tap's side sends begins with >, one that it receives with <, a frame
		// that is not a message with ?.
		frames []string
		want   string // the broken rules, each with the role that broke it
	}{
		{"client", func(t testing.TB) transport.Tap { return ClientTap(t) }, []string{">" + initialize, "<" + answer, ">" + bad, "<" + badAnswer, "?x"}, "schema: client|schema: server"},
		{"server", func(t testing.TB) transport.Tap { return ServerTap(t) }, []string{"<" + initialize, ">" + answer, "<" + bad, ">" + badAnswer, "?x"}, "schema: client|schema: server"},
		{"client, sent", func(t testing.TB) transport.Tap { return ClientTap(t, SentOnly()) }, []string{">" + initialize, "<" + answer, ">" + bad, "<" + badAnswer, "?x"}, "schema: client"},
		{"server, sent", func(t testing.TB) transport.Tap { return ServerTap(t, SentOnly()) }, []string{"<" + initialize, ">" + answer, "<" + bad, ">" + badAnswer, "?x"}, "schema: server"},
		{"an answer to no message", func(t testing.TB) transport.Tap { return ServerTap(t, SentOnly()) }, []string{`?{"id":7}`, `>{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"no"}}`}, ""},
		{"one connection after the other", func(t testing.TB) transport.Tap { return ClientTap(t) }, []string{">" + initialize, "<" + answer, ">" + initialize, "<" + answer}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fakeTB{TB: t}
			tap := tt.tap(f)
			for _, frame := range tt.frames {
				kind := map[byte]transport.FrameKind{'>': transport.Sent, '<': transport.Received, '?': transport.Malformed}[frame[0]]
				tap(transport.Frame{Kind: kind, Data: []byte(frame[1:])})
			}
			var got []string
			for _, text := range f.errors {
				rule, rest, _ := strings.Cut(text, ": ")
				role, _, _ := strings.Cut(rest, " ")
				got = append(got, rule+": "+role)
			}
			if got := strings.Join(got, "|"); got != tt.want {
				t.Errorf("broken: %s\nwant %s", got, tt.want)
			}
		})
	}
}
