package calling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/transporttest"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

const methodNotFound = `"error":{"code":-32601,"message":"no such method"}`

// probe is a server's behaviour while it is probed. An answer is the member of a response
// ("result":… or "error":…), "eof" ends the connection, "" is silence, a frame in braces is sent as
// it is, and "5s …" comes later.
type probe struct {
	name                 string
	discover, initialize string
	opts                 transport.ClientOptions
	known                mcp.Revision // verdict of the endpoint before the dial

	want     mcp.Revision
	err      string // a part of the error
	is       error
	methods  string // what the server was asked, in order
	took     time.Duration
	remember mcp.Revision // afterwards; "-" for what want says
}

func unsupported(versions string) string {
	return `"error":{"code":-32022,"message":"m","data":{"requested":"2026-07-28","supported":[` + versions + `]}}`
}

const (
	modernOnly = "server/discover"
	fallback   = "server/discover initialize notifications/initialized"
	legacyOnly = "initialize notifications/initialized"
)

func legacyAnswer(discover string) probe {
	return probe{discover: discover, initialize: initialized(r18), want: r18, methods: fallback}
}

const (
	r24 = mcp.Revision20241105
	r18 = mcp.Revision20250618
	r25 = mcp.Revision20251125
	r26 = mcp.Revision20260728
)

func named(name string, p probe) probe { p.name = name; return p }

var probes = []probe{
	{name: "a modern server", discover: discovered, want: r26, methods: modernOnly},
	{name: "a dual-era server", discover: strings.Replace(discovered, `["2026-07-28"]`, `["2099-01-01","2026-07-28","2025-11-25"]`, 1), want: r26, methods: modernOnly},
	{name: "modern, without resultType", discover: `"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}`, want: r26, methods: modernOnly},
	named("it discovers legacy versions only", legacyAnswer(strings.Replace(discovered, `["2026-07-28"]`, `["2025-11-25","2025-06-18"]`, 1))),
	{name: "it discovers versions that nobody knows", discover: strings.Replace(discovered, `["2026-07-28"]`, `["2099-01-01"]`, 1), err: "no common protocol version: the server speaks [2099-01-01]", methods: modernOnly},
	named("unsupported, legacy ones are", legacyAnswer(unsupported(`"2099-01-01","2025-06-18"`))),
	{name: "unsupported, none in common", discover: unsupported(`"2099-01-01"`), err: "no common protocol version: the server speaks [2099-01-01]", methods: modernOnly},
	named("unsupported, none named", legacyAnswer(unsupported(``))),
	named("unsupported, without data", legacyAnswer(`"error":{"code":-32022,"message":"m"}`)),
	named("unsupported, data that is none", legacyAnswer(`"error":{"code":-32022,"message":"m","data":"x"}`)),
	{name: "another modern error: header", discover: `"error":{"code":-32020,"message":"m"}`, want: r26, methods: "server/discover server/discover"},
	{name: "another modern error: capability", discover: `"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{}}}`, want: r26, methods: "server/discover server/discover"},
	named("method not found", legacyAnswer(methodNotFound)),
	named("invalid params", legacyAnswer(`"error":{"code":-32602,"message":"Invalid request parameters","data":""}`)),
	named("not initialized", legacyAnswer(`"error":{"code":-32000,"message":"Server not initialized"}`)),
	named("invalid request", legacyAnswer(`"error":{"code":-32600,"message":"m"}`)),
	named("internal error", legacyAnswer(`"error":{"code":-32603,"message":"m"}`)),
	named("resource not found", legacyAnswer(`"error":{"code":-32002,"message":"m"}`)),
	named("zero", legacyAnswer(`"error":{"code":0,"message":""}`)),
	named("an empty result", legacyAnswer(`"result":{}`)),
	named("a result with versions that are none", legacyAnswer(`"result":{"supportedVersions":"2026-07-28"}`)),
	named("a result that is null", legacyAnswer(`"result":null`)),
	named("an error that is text", legacyAnswer(`"error":"unknown method"`)),
	named("an error without code", legacyAnswer(`"error":{"message":"m"}`)),
	named("neither result nor error", legacyAnswer(`"foo":1`)),
	{name: "the id as text", discover: `{"jsonrpc":"2.0","id":"1",` + discovered + `}`, want: r26, methods: modernOnly},
	{name: "an error without id", discover: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`, initialize: initialized(r18), want: r18, methods: fallback},

	{name: "silence, then initialize", initialize: initialized(r25), want: r25, methods: fallback, took: 3 * time.Second},
	{name: "silence of another length", opts: transport.ClientOptions{ProbeTimeout: 7 * time.Second}, initialize: initialized(r25), want: r25, methods: fallback, took: 7 * time.Second},
	{name: "late, and modern", discover: "5s " + discovered, want: r26, methods: "server/discover initialize", took: 5 * time.Second},
	{name: "late, modern, and initialize is refused before", discover: "60s " + discovered, initialize: `"error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}`, want: r26, methods: "server/discover initialize", took: time.Minute},
	{name: "late, modern, and initialize is unknown before", discover: "60s " + discovered, initialize: methodNotFound, want: r26, methods: "server/discover initialize", took: time.Minute},
	{name: "late, and legacy", discover: "5s " + methodNotFound, initialize: "9s " + initialized(r18), want: r18, methods: fallback, took: 12 * time.Second},
	{name: "initialize answers first", discover: "9s " + discovered, initialize: "1s " + initialized(r18), want: r18, methods: fallback, took: 4 * time.Second},
	{name: "no answer at all", err: "the server has not answered", is: context.DeadlineExceeded, methods: "server/discover initialize", took: 100 * time.Second},
	{name: "an error to both", discover: methodNotFound, initialize: methodNotFound, err: "initialize: no such method (-32601)", methods: "server/discover initialize"},
	{name: "an error to both, late", discover: "8s " + methodNotFound, initialize: methodNotFound, err: "answers neither server/discover nor initialize", methods: "server/discover initialize", took: 8 * time.Second},
	{name: "nothing that is any use, late", discover: `8s "result":{}`, initialize: methodNotFound, err: "answers neither server/discover nor initialize", methods: "server/discover initialize", took: 8 * time.Second},

	{name: "it dies of the probe", discover: "eof", is: transport.ErrProbe, methods: modernOnly},
	{name: "it dies of the probe, later", discover: "2s eof", is: transport.ErrProbe, methods: modernOnly, took: 2 * time.Second},
	{name: "it dies of the probe, after the other question", discover: "4s eof", is: transport.ErrProbe, methods: "server/discover initialize", took: 4 * time.Second},
	{name: "it refuses the probe and dies", discover: methodNotFound, initialize: "eof", is: transport.ErrProbe, methods: "server/discover initialize"},

	{name: "initialize: any legacy version", discover: methodNotFound, initialize: initialized(r24), want: r24, methods: fallback},
	{name: "initialize: an unknown version", discover: methodNotFound, initialize: initialized("2025-01-01"), err: `no common protocol version: the server answered 2025-11-25 with "2025-01-01"`, methods: "server/discover initialize"},
	{name: "initialize: a modern version", discover: methodNotFound, initialize: initialized(r26), err: `no common protocol version`, methods: "server/discover initialize"},
	{name: "initialize: no version", discover: methodNotFound, initialize: `"result":{}`, err: `no common protocol version`, methods: "server/discover initialize"},
	{name: "initialize: no result", discover: methodNotFound, initialize: `"result":{"protocolVersion":5}`, err: `malformed`, methods: "server/discover initialize"},

	{name: "pinned, modern", opts: transport.ClientOptions{Revision: r26}, discover: discovered, want: r26, methods: modernOnly, remember: "none"},
	{name: "pinned, modern, legacy server", opts: transport.ClientOptions{Revision: r26}, discover: methodNotFound, err: "does not speak revision 2026-07-28, which is pinned: no such method (-32601)", methods: modernOnly},
	{name: "pinned, modern, useless server", opts: transport.ClientOptions{Revision: r26}, discover: `"result":{}`, err: "does not speak revision 2026-07-28, which is pinned", methods: modernOnly},
	{name: "pinned, modern, silent server", opts: transport.ClientOptions{Revision: r26}, is: context.DeadlineExceeded, methods: modernOnly, took: 100 * time.Second},
	{name: "pinned, modern, slow server", opts: transport.ClientOptions{Revision: r26}, discover: "50s " + discovered, want: r26, methods: modernOnly, took: 50 * time.Second, remember: "none"},
	{name: "pinned, legacy", opts: transport.ClientOptions{Revision: r24}, initialize: initialized(r24), want: r24, methods: legacyOnly, remember: "none"},
	{name: "pinned, legacy, another answered", opts: transport.ClientOptions{Revision: r24}, initialize: initialized(r25), err: "speaks revision 2025-11-25, but 2024-11-05 is pinned", methods: "initialize"},
	{name: "pinned, legacy, refused", opts: transport.ClientOptions{Revision: r24}, discover: discovered, initialize: methodNotFound, err: "initialize: no such method", methods: "initialize"},
	{name: "pinned, to come", opts: transport.ClientOptions{Revision: "2027-01-01"}, discover: discovered, err: `revision "2027-01-01" is pinned, and dowel speaks [2026-07-28 2025-11-25`},
	{name: "pinned, no revision", opts: transport.ClientOptions{Revision: "foo"}, discover: discovered, err: `revision "foo" is pinned`},
	{name: "pinned, legacy, and the server says what it speaks", opts: transport.ClientOptions{Revision: r24}, initialize: `"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2099-01-01"],"requested":"2024-11-05"}}`, err: "Unsupported protocol version (-32602): the server speaks [2099-01-01]", methods: "initialize"},
	{name: "pinned wins over what is known", opts: transport.ClientOptions{Revision: r24}, known: r26, initialize: initialized(r24), want: r24, methods: legacyOnly, remember: r26},

	{name: "known to be legacy", known: r18, discover: discovered, initialize: initialized(r18), want: r18, methods: legacyOnly},
	{name: "known to be modern", known: r26, discover: discovered, want: r26, methods: modernOnly},
	{name: "known to be legacy, and modern by now", known: r18, discover: discovered, initialize: methodNotFound, want: r26, methods: "initialize server/discover"},
	{name: "known to be modern, and legacy by now", known: r26, discover: methodNotFound, initialize: initialized(r25), want: r25, methods: fallback},
	{name: "known to be legacy, and dead", known: r18, initialize: "eof", is: mcp.ErrConnection, methods: "initialize", remember: "none"},
}

func TestConnect(t *testing.T) {
	for _, p := range probes {
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { p.run(t) })
		})
	}
}

func (p probe) run(t *testing.T) {
	f := newFake(t, func(f *fake, m jsonrpc.Message) {
		switch m.Method {
		case mcp.MethodDiscover:
			act(f, m, p.discover)
		case mcpwire.MethodInitialize:
			act(f, m, p.initialize)
		}
	})
	opts := p.opts
	opts.Logger, opts.Verdicts = quiet, &transport.Verdicts{}
	opts.Tap = mcptest.ClientTap(t, mcptest.WithoutChecks("server:schema", "server:framing", "server:response-id", "server:result-type", "server:cache", "server:lifecycle", "server:after-end", "server:error-code"), mcptest.WithoutChecks("client:lifecycle"))
	opts.Verdicts.Remember("e", p.known)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	in := &recorder{}
	begin := time.Now()
	c, err := overconn.Connect(ctx, f.near, in, "e", opts)
	if took := time.Since(begin); took != p.took {
		t.Errorf("took %v", took)
	}
	p.check(t, c, err)
	synctest.Wait()
	if got := f.methods(); got != p.methods {
		t.Errorf("the server was asked %s", got)
	}
	want := p.remember
	switch {
	case want == "none", want == "" && p.want == "" && p.known == "":
		want = ""
	case want == "" && p.want != "":
		want = p.want
	}
	if got := opts.Verdicts.Lookup("e"); got != want {
		t.Errorf("remembered: %q, want %q", got, want)
	}
	if c != nil {
		c.Close()
	}
	<-f.ended // the connection is closed where Connect fails
	if len(in.down()) != 0 {
		t.Errorf("Down was called: %v", in.down())
	}
	time.Sleep(time.Hour) // everything that arrives later is ignored
}

func (p probe) check(t *testing.T, c mcp.Transport, err error) {
	if p.want == "" {
		if err == nil || !strings.Contains(err.Error(), p.err) || p.is != nil && !errors.Is(err, p.is) || strings.Contains(err.Error(), "%!") {
			t.Errorf("the error is %v", err)
		}
		if p.is != transport.ErrProbe && errors.Is(err, transport.ErrProbe) {
			t.Errorf("the connection did not end: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodDiscover})
	if err == nil && res.Revision != p.want {
		t.Errorf("speaks %s", res.Revision)
	}
	if p.want != r26 && err != nil {
		t.Error(err)
	}
}

func act(f *fake, m jsonrpc.Message, answer string) {
	if delay, rest, ok := strings.Cut(answer, " "); ok {
		if d, err := time.ParseDuration(delay); err == nil {
			after(d, func() { act(f, m, rest) })
			return
		}
	}
	switch {
	case answer == "":
	case answer == "eof":
		f.far.Close()
	case answer[0] == '{':
		f.send("%s", answer)
	default:
		f.reply(m, answer)
	}
}

// Rubbish, logs and requests before the handshake disturb nothing.
func TestConnectReadsPastRubbish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var strays []string
		f := newFake(t, func(f *fake, m jsonrpc.Message) {
			if m.Method != mcp.MethodDiscover {
				return
			}
			f.send(`Server started on stdio`)
			f.send(`{"level":"info"}`)
			f.send(`{"id":1,"result":`)
			f.send(`[{"jsonrpc":"2.0","method":"x"}]`)
			f.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"up"}}`)
			f.send(`{"jsonrpc":"2.0","id":99,"result":{}}`)
			f.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			f.send(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
			f.send(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":[]}`) // malformed, and its id is its own
			f.reply(m, discovered)
		})
		c, err := overconn.Connect(t.Context(), f.near, &recorder{}, "", transport.ClientOptions{Logger: quiet, Tap: func(fr transport.Frame) { // the sent frames are compared below
			if fr.Kind == transport.Malformed {
				strays = append(strays, string(fr.Data))
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		<-f.ended
		if got := strings.Join(strays, "|"); got != `Server started on stdio|{"level":"info"}|{"id":1,"result":|[{"jsonrpc":"2.0","method":"x"}]|{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":[]}` {
			t.Errorf("strays: %s", got)
		}
		if got := f.methods(); got != `server/discover {"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("the server got %s", got)
		}
	})
}

// A connection lost between the handshake and the return of Connect is reported by Connect or by
// Down.
func TestConnectionLostWhileConnecting(t *testing.T) {
	for _, answer := range []string{discovered, methodNotFound} {
		for range 200 {
			f := newFake(t, func(f *fake, m jsonrpc.Message) {
				switch m.Method {
				case mcp.MethodDiscover:
					f.reply(m, answer)
				case mcpwire.MethodInitialize:
					f.reply(m, initialized(r25))
				}
				if m.Method == mcpwire.MethodInitialize || answer == discovered {
					f.far.Close()
				}
			})
			in := &recorder{}
			c, err := overconn.Connect(t.Context(), f.near, in, "", transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
			if err != nil {
				if len(in.down()) != 0 || !errors.Is(err, mcp.ErrConnection) {
					t.Fatalf("Connect failed with %v, and Down was told %v", err, in.down())
				}
				continue
			}
			polltest.Until(t, "a call of Down, though Connect returned a dead transport", func() bool { return len(in.down()) > 0 })
			c.Close()
			if len(in.down()) != 1 {
				t.Fatalf("Down was called %d times", len(in.down()))
			}
		}
	}
}

func TestClientDeclares(t *testing.T) {
	opts := transport.ClientOptions{
		Info:         mcp.Implementation{Name: "me", Title: "Me", Version: "3"},
		Capabilities: mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}, Elicitation: &mcp.ElicitationCapability{URL: &struct{}{}}, Extensions: map[string]json.RawMessage{"x/y": json.RawMessage(`{"a":1}`)}},
	}
	withExtensions := opts
	withExtensions.Extensions = []mcp.Extension{{ID: "v/w"}}
	modern := func(extensions string) string {
		return `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"me","title":"Me","version":"3"},` +
			`"io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{"url":{}},"extensions":` + extensions + `}}`
	}
	for _, tt := range []struct {
		name string
		r    mcp.Revision
		opts transport.ClientOptions
		want string
	}{
		{"modern", r26, opts, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":` + modern(`{"x/y":{"a":1}}`) + `}}`},
		{"modern, with an extension", r26, withExtensions, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":` + modern(`{"v/w":{},"x/y":{"a":1}}`) + `}}`},
		{"2025-06-18", r18, opts, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true},"elicitation":{},"extensions":{"x/y":{"a":1}}},"clientInfo":{"name":"me","title":"Me","version":"3"}}}`},
		{"2024-11-05", r24, opts, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"roots":{"listChanged":true},"extensions":{"x/y":{"a":1}}},"clientInfo":{"name":"me","version":"3"}}}`},
		{"nothing", r26, transport.ClientOptions{}, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":"${dowel}","io.modelcontextprotocol/clientCapabilities":{}}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, f := connected(t, tt.r, nil, tt.opts, nil)
			defer c.Close()
			if got := f.received()[0]; !transporttest.MatchJSON(tt.want, []byte(got)) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if fmt.Sprint(opts.Capabilities.Extensions) != fmt.Sprint(map[string]json.RawMessage{"x/y": json.RawMessage(`{"a":1}`)}) {
		t.Error("the options were changed")
	}
}
