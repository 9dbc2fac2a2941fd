package serving_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// An unusable frame is answered if possible, and does not disturb the connection.
func TestUnusableFrames(t *testing.T) {
	const (
		parse   = `< {"jsonrpc":"2.0","error":{"code":-32700,"message":$M}}`
		invalid = `< {"jsonrpc":"2.0","error":{"code":-32600,"message":$M}}`
		one     = `< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":$M}}`
	)
	for _, tt := range []struct{ name, frame, modern string }{
		{"no JSON", `hello`, parse},
		{"half a message", `{"jsonrpc":"2.0","id":1,"method":"tools/list"`, parse},
		{"a brace", `{`, parse}, {"half a name", `{"a`, parse}, {"no value", `{"a":`, parse}, {"half a result", `{"id":1,"result":`, parse}, {"half an error", `{"method":"m","error":"`, parse},
		{"two messages", `{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}`, parse},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", parse},
		{"nested too deeply", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":` + strings.Repeat(`{"a":`, 1100) + `1` + strings.Repeat(`}`, 1100) + `}`, one},
		{"a bomb", strings.Repeat(`{"a":`, 100_000), invalid},
		{"a bomb of lists is a batch", strings.Repeat("[", 100_000), invalid},
		{"text", `"x"`, invalid},
		{"null", `null`, invalid},
		{"an empty object", `{}`, invalid},
		{"id is null", `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, invalid},
		{"id is true", `{"jsonrpc":"2.0","id":true,"method":"tools/list"}`, invalid},
		{"id is an object", `{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, invalid},
		{"version 1", `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, one},
		{"no version", `{"id":1,"method":"tools/list"}`, one},
		{"method is a number", `{"jsonrpc":"2.0","id":1,"method":5}`, one},
		{"method is empty", `{"jsonrpc":"2.0","id":1,"method":""}`, one},
		{"no method", `{"jsonrpc":"2.0","id":1}`, one},
		{"params are a list", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, one},
		{"params are text", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"a"}`, one},
		{"a member twice", `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/list"}`, one},
		{"a method and a result", `{"jsonrpc":"2.0","id":1,"method":"tools/list","result":{}}`, one},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","method":"x"}]`, one},
		{"a batch of notifications", `[{"jsonrpc":"2.0","method":"x"}]`, invalid},
		{"an empty batch", `[]`, invalid},
		// only requests are answered
		{"params of a notification are a list", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`, ``},
		{"params of a notification are text", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":"a"}`, ``},
		{"a response to nothing", `{"jsonrpc":"2.0","id":77,"result":{}}`, ``},
		{"an error to nothing", `{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"m"}}`, ``},
		{"an error without id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, ``},
		{"a malformed response", `{"jsonrpc":"2.0","id":77,"result":[]}`, ``},
		{"a malformed error", `{"jsonrpc":"2.0","id":77,"error":"bad"}`, ``},
		{"a response with both", `{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"m"}}`, ``},
		{"a result without id", `{"jsonrpc":"2.0","result":{}}`, ``},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{"a":1}}`, ``},
		{"a notification that panics", `{"jsonrpc":"2.0","method":"notifications/panic"}`, ``},
		{"cancelling nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`, ``},
		{"cancelling without id", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, ``},
		{"cancelling null", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null,"reason":5}}`, ``},
	} {
		t.Run(tt.name+"/modern", func(t *testing.T) {
			talk(t, newTestServer(), transport.ServerOptions{}, "> "+tt.frame+"\n"+tt.modern+"\n"+
				`> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{},$META}}`+"\n"+`$OK 2 "{}"`)
		})
		for _, r := range legacyRevisions {
			if r == mcp.Revision20250326 && strings.Contains(tt.name, "batch") {
				continue
			}
			want := tt.modern
			if r < mcp.Revision20251125 && !strings.Contains(want, `"id"`) {
				want = "" // errors without an id came with a later schema
			}
			t.Run(tt.name+"/"+string(r), func(t *testing.T) {
				talk(t, newTestServer(), transport.ServerOptions{}, "$INIT "+string(r)+"\n> "+tt.frame+"\n"+want+"\n"+
					`> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}`+"\n"+`$OK 2 "{}"`)
			})
		}
	}
}

func TestBatches(t *testing.T) {
	const start = "$INIT 2025-03-26\n"
	echo := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	}
	ok := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"{}"}]}}`
	}
	next := "\n> " + echo(`"next"`) + "\n< " + ok(`"next"`)
	talkAll(t, []row{
		{name: "one request", script: start + "> [" + echo("1") + "]\n< [" + ok("1") + "]" + next},
		{name: "requests and notifications", script: start + `> [{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]
			< [{"jsonrpc":"2.0","id":1,"result":{}}]` + next},
		{name: "notifications only", script: start + `> [{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}]` + next},
		{name: "errors are part of it", script: start + `> [{"jsonrpc":"2.0","id":1,"method":"no/such"}]
			< [{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":$M}}]` + next},
		{name: "invalid items have their answers in it", script: start + `> [{"jsonrpc":"2.0","id":1,"method":5},{"jsonrpc":"1.0","id":2,"method":"ping"}]
			< [{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":$M}},{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":$M}}]` + next},
		{name: "an invalid item beside a request", script: start + `> [{"jsonrpc":"2.0","id":1,"method":5},{"jsonrpc":"2.0","id":2,"method":"ping"}]
			< [{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":$M}},{"jsonrpc":"2.0","id":2,"result":{}}]` + next},
		{name: "items without id that can be told", script: start + `> [1,"x",null,[],{},{"jsonrpc":"2.0","id":2,"method":"ping"}]
			< [{"jsonrpc":"2.0","id":2,"result":{}}]` + next},
		{name: "nothing but rubbish", script: start + `> [1,2,3]` + next},
		{name: "empty", script: start + `> []` + next},
		{name: "no JSON", script: start + `> [` + echo("1") + `,]` + next},
		{name: "a batch in a batch", script: start + `> [[` + echo("1") + `],` + echo("2") + "]\n< [" + ok("2") + "]" + next},
		{name: "initialize inside", script: start + `> [{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}},` + echo("2") + `]
			< [{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":$M}},` + ok("2") + "]" + next},
		{name: "before initialize", script: `
			> [{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}]
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":$M}}`},
		{name: "the same id twice", script: start + `> [` + strings.Replace(echo("2"), "echo", "hang", 1) + "," + echo("2") + "]\n" +
			`> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
			< [{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":$M}}]` + next},
		{name: "a cancelled request is left out", script: start + `> [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang"}},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}]
			< [{"jsonrpc":"2.0","id":1,"result":{}}]` + next},
		{name: "all of it cancelled", script: start + `> [{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang"}}]
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}` + next},
		{name: "answers to questions", script: start + `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask roots","arguments":{}}}
			< {"jsonrpc":"2.0","id":1,"method":"roots/list"}
			> [{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}]
			< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the client refused roots/list: no"}],"isError":true}}` + next},
		{name: "too many", opts: transport.ServerOptions{MaxConcurrent: 1}, script: start + `> [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
			< [{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":$M}}]` + next},
		{name: "more messages than a batch may hold", script: start + `> [` + strings.Repeat("0,", 2000) + "0]" + next},
		{name: "progress goes out at once", script: start + `> [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":1}}}]
			< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"m"}}
			< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2,"message":"m"}}
			< [{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}]` + next},
	})
}

func TestIDsInFlight(t *testing.T) {
	call := func(id, name string) string {
		return `> {"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":{},$META}}` + "\n"
	}
	cancel := func(id string) string {
		return `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"enough"}}` + "\n"
	}
	busy := func(id string) string {
		return `< {"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":$M}}` + "\n"
	}
	w := newTestServer()
	play(t, w, transport.ServerOptions{}, "@lenient request-id after-end\n"+call("1", "hang")+
		call("1", "echo")+`< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":$M}}`+"\n"+
		call(`"1"`, "echo")+`$OK "1" "{}"`+"\n"+
		cancel(`"1"`)+call("2", "echo")+`$OK 2 "{}"`+"\n"+ // text is another id
		cancel("1")+call("1", "echo")+`$OK 1 "{}"`+"\n"+ // the id of a finished call can be used again
		cancel("1"))
	if got := w.seen(); got != "hang: cancelled by the client: enough (canceled: true)" {
		t.Errorf("the handler saw %s", got)
	}
	play(t, newTestServer(), transport.ServerOptions{MaxConcurrent: 2}, call("1", "hang")+call("2", "hang")+call("3", "echo")+busy("3")+cancel("2")+call("4", "echo")+`$OK 4 "{}"`+"\n"+
		call("5", "hang")+call("6", "echo")+busy("6")+cancel("1")+cancel("5")+call("7", "echo")+`$OK 7 "{}"`)
}

// A cancelled call is not answered, whatever its handler does.
func TestNothingComesBehindACancellation(t *testing.T) {
	tools["deaf"] = func(w *testServer, _ ctx, req *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
		<-w.gate
		for range 2 {
			err := req.Peer.Notify(background, mcp.Notification{Method: mcp.NotificationProgress, Params: []byte(`{"progressToken":1,"progress":1}`)})
			w.saw("notify: %v", err)
		}
		return text("too late")
	}
	tools["wake"] = func(w *testServer, _ ctx, _ *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
		close(w.gate)
		return text("woken")
	}
	w := newTestServer()
	play(t, w, transport.ServerOptions{}, `
		> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deaf","_meta":{`+version+`,`+capabilities+`,"progressToken":1}}}
		> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
		> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wake",$META}}
		$OK 2 "woken"
		@wait 1s`)
	if got := w.seen(); got != strings.TrimSpace(strings.Repeat("notify: the request is over\n", 2)) {
		t.Errorf("the handler saw %s", got)
	}
}

func TestNotificationsReachTheHandler(t *testing.T) {
	w := newTestServer()
	play(t, w, transport.ServerOptions{}, `@lenient schema direction cancellation
		$INIT 2025-06-18
		> {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
		> {"jsonrpc":"2.0","method":"notifications/panic","params":{"a":1}}
		> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}
		> {"jsonrpc":"2.0","method":"x/y"}`)
	var got []string
	for _, n := range w.notes {
		got = append(got, n.Method+string(n.Params))
	}
	if s := strings.Join(got, " "); s != `notifications/roots/list_changed notifications/panic{"a":1} x/y` {
		t.Errorf("got %s", s)
	}
}

// Unusable notifications are logged, and the connection stays open.
func TestUnusableNotificationsAreLogged(t *testing.T) {
	for frame, want := range map[string]string{
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}`: "notifications/cancelled without a requestId",
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`:                             "notifications/cancelled without a requestId",
		`{"jsonrpc":"2.0","method":"tools/list","params":{}}`:                              "tools/list without an id",
	} {
		var log bytes.Buffer
		play(t, newTestServer(), transport.ServerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, `@lenient schema direction cancellation
			$INIT 2025-06-18
			> `+frame+`
			> {"jsonrpc":"2.0","id":9,"method":"ping"}
			< {"jsonrpc":"2.0","id":9,"result":{}}`)
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s: the log says %q", frame, log.String())
		}
	}
}
