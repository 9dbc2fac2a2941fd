package serving_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// seen returns the declared capabilities that the session's revision has, as a handler sees them.
func seen(r mcp.Revision) string {
	capabilities := `{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}`
	switch {
	case r < mcp.Revision20250618:
		capabilities = `{"roots":{},"sampling":{}}`
	case r < mcp.Revision20251125:
		capabilities = `{"roots":{},"sampling":{},"elicitation":{}}`
	}
	return strings.ReplaceAll(capabilities, `"`, `\"`)
}

var legacyRevisions = []mcp.Revision{mcp.Revision20251125, mcp.Revision20250618, mcp.Revision20250326, mcp.Revision20241105}

// Each revision that a client can ask for, against each set that a server may speak.
func TestNegotiation(t *testing.T) {
	all := mcp.Revisions()
	for _, asked := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2099-01-01", "1.0.0", "draft"} {
		for _, allowed := range [][]mcp.Revision{nil, all[1:], all[:1], all[1:2], all[2:3], all[4:], {all[0], all[2], all[4]}} {
			spoken := allowed
			if spoken == nil {
				spoken = all
			}
			want := answered(mcp.Revision(asked), spoken)
			t.Run(fmt.Sprintf("%s of %v", asked, allowed), func(t *testing.T) {
				script := `@lenient schema lifecycle
					> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + asked + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n"
				if want == "" {
					script += `< {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":$M,"data":{"requested":"` + asked + `","supported":["2026-07-28"]}}}`
				} else {
					script += `< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"` + string(want) + `","capabilities":"${c}","serverInfo":"${i}","instructions":"be kind"}}
						> {"jsonrpc":"2.0","method":"notifications/initialized"}
						> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"request"}}
						< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"` + string(want) + `|{}|{\"name\":\"c\",\"version\":\"1\"}||info|"}]}}`
				}
				play(t, newTestServer(), transport.ServerOptions{Revisions: allowed}, script)
			})
		}
	}
}

func answered(asked mcp.Revision, spoken []mcp.Revision) mcp.Revision {
	if slices.Contains(spoken, asked) && asked < mcp.Revision20260728 {
		return asked
	}
	for _, r := range spoken {
		if r < mcp.Revision20260728 {
			return r
		}
	}
	return ""
}

// The answers to requests behind initialize follow its own, however long that takes.
func TestRequestsBehindInitialize(t *testing.T) {
	slow := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			time.Sleep(time.Second)
			return &mcp.Result{Raw: json.RawMessage(`{"supportedVersions":["2025-11-25"],"capabilities":{"tools":{}}}`)}, nil
		}
		return &mcp.Result{Raw: json.RawMessage(`{"tools":[]}`)}, nil
	})
	talk(t, slow, transport.ServerOptions{}, `@lenient lifecycle schema
		> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
		> {"jsonrpc":"2.0","id":2,"method":"ping"}
		@wait 2s
		< {"jsonrpc":"2.0","id":1,"result":"${r}"}
		< {"jsonrpc":"2.0","id":2,"result":{}}`)
}

func TestHandshake(t *testing.T) {
	ping := `> {"jsonrpc":"2.0","id":"p","method":"ping"}
		< {"jsonrpc":"2.0","id":"p","result":{}}` + "\n"
	for _, r := range legacyRevisions {
		talkAll(t, []row{
			{name: string(r) + " ping before initialize", script: strings.ReplaceAll(ping, `"p"`, `"q"`) + "$INIT " + string(r) + "\n" + ping},
		})
		playAll(t, []row{
			{name: string(r) + " handshake", script: "$INIT " + string(r) + "\n" + ping},
			{name: string(r) + " initialize again", script: "@lenient lifecycle\n$INIT " + string(r) + `
				> {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
				< {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":$M}}
				> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"request"}}
				$OK 3 "` + string(r) + `|` + seen(r) + `|{\"name\":\"c\",\"version\":\"1\"}||info|"`},
		})
	}
	playAll(t, []row{
		{name: "no params", script: `@lenient schema
			> {"jsonrpc":"2.0","id":1,"method":"initialize"}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":$M}}
			$INIT 2025-06-18`},
		{name: "a version that is a number", script: `@lenient schema lifecycle
			> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":$M}}
			$INIT 2025-06-18`},
		{name: "nothing else before initialize", script: `@lenient schema meta
			> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":$M}}
			> {"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"}}
			< {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":$M}}
			$INIT 2025-06-18`},
		{name: "a request right behind initialize", script: `@lenient lifecycle
			$INIT 2025-06-18
			> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{}}}
			$OK 3 "{}"`},
		{name: "initialized twice, and before initialize", script: `@lenient schema
			> {"jsonrpc":"2.0","method":"notifications/initialized"}
			$INIT 2025-11-25
			> {"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + ping},
		{name: "a token that is none", script: `@lenient schema lifecycle
			> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"},"_meta":{"progressToken":{}}}}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":$M}}
			$INIT 2025-06-18`},
	})
}

// initialize cannot be cancelled.
func TestInitializeIsNotCancelled(t *testing.T) {
	w := newTestServer()
	w.hold = true
	tools["open the gate"] = func(w *testServer, _ ctx, _ *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
		time.AfterFunc(time.Millisecond, func() { close(w.gate) })
		return text("open")
	}
	play(t, w, transport.ServerOptions{}, `@lenient cancellation after-end lifecycle
		> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
		> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
		> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{$META,"name":"open the gate"}}
		< {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"open"}]}}
		@wait 1s
		< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":"${c}","serverInfo":"${i}","instructions":"be kind"}}`)
}

// A handshake that failed has opened nothing: the client may try again.
func TestInitializeAgainAfterAFailure(t *testing.T) {
	w := newTestServer()
	play(t, mcp.HandlerFunc(func(c ctx, req *mcp.Request) (*mcp.Result, error) {
		w.broken = req.Revision == mcp.Revision20251125
		return w.ServeMCP(c, req)
	}), transport.ServerOptions{}, `@lenient lifecycle
		> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
		< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}
		$INIT 2025-06-18`)
}

func TestLegacyMethods(t *testing.T) {
	rows := []row{}
	for _, r := range legacyRevisions {
		rows = append(rows, row{name: string(r), script: "@lenient schema meta direction\n$INIT " + string(r) + `
			> {"jsonrpc":"2.0","id":1,"method":"server/discover"}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":$M}}
			> {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{}}}
			< {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":$M}}
			> {"jsonrpc":"2.0","id":3,"method":"no/such"}
			< {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":$M}}
			> {"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"error"}}
			< {"jsonrpc":"2.0","id":4,"result":{}}
			> {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"request","_meta":{"progressToken":7}}}
			$OK 5 "` + string(r) + `|` + seen(r) + `|{\"name\":\"c\",\"version\":\"1\"}|7|error|"
			> {"jsonrpc":"2.0","id":6,"method":"logging/setLevel","params":{"level":"loud"}}
			< {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":$M}}
			> {"jsonrpc":"2.0","id":7,"method":"logging/setLevel"}
			< {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":$M}}
			> {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"request"}}
			$OK 8 "` + string(r) + `|` + seen(r) + `|{\"name\":\"c\",\"version\":\"1\"}||error|"
			> {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"request","_meta":{"progressToken":[]}}}
			< {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":$M}}
			# the experimental task field is ignored
			> {"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"echo","arguments":{},"task":{"ttl":1}}}
			$OK 10 "{}"
			> {"jsonrpc":"2.0","id":11,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":11,"result":{"tools":[]}}`})
	}
	playAll(t, rows)
}

func TestLegacyResults(t *testing.T) {
	call := func(name, arguments string) string {
		return "$INIT 2025-06-18\n" + `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + "}}\n"
	}
	internal := `< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":$M}}`
	next := "\n" + `> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}` + "\n" + `$OK 2 "{}"`
	playAll(t, []row{
		{name: "panic", script: call("panic", `{}`) + internal + next},
		{name: "plain error", script: call("plain error", `{}`) + internal + next},
		{name: "neither", script: call("nothing", `{}`) + internal + next},
		{name: "a value that panics", script: call("value", `{"of":"a panic"}`) + internal + next},
		{name: "a nil pointer", script: call("value", `{"of":"a nil pointer"}`) + internal + next},
		{name: "text", script: call("value", `{"of":"text"}`) + internal + next},
		{name: "half-made content", script: call("value", `{"of":"half-made content"}`) + internal + next},
		{name: "raw keeps what it may", script: call("raw", `{"resultType":"complete","content":[],"ttlMs":5,"cacheScope":"public","unknown":[1.0],"_meta":{"k":1}}`) +
			`< {"jsonrpc":"2.0","id":1,"result":{"content":[],"unknown":[1.0],"_meta":{"k":1}}}` + next},
		{name: "structured content that is not an object", script: call("raw", `{"content":[],"structuredContent":[1]}`) + `< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}` + next},
		{name: "a capability is missing: a tool error", script: call("capable", `{}`) + `< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"${t}"}],"isError":true}}` + next},
		{name: "a capability is missing: a prompt", script: "$INIT 2025-06-18\n" + `> {"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"capable"}}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":$M}}` + next},
		{name: "modern codes", script: call("error", `{"code":-32020}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"m"}}` + next},
		{name: "modern codes: version", script: call("error", `{"code":-32022,"data":{"a":1}}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"m","data":{"a":1}}}` + next},
		{name: "invalid params", script: call("error", `{"code":-32602,"data":{"uri":"x://a"}}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":{"uri":"x://a"}}}` + next},
		{name: "URL elicitation belongs to 2025-11-25", script: call("error", `{"code":-32042,"data":{"elicitations":[]}}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":{"elicitations":[]}}}` + next},
		{name: "no such resource", script: "$INIT 2025-11-25\n" + `> {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://error","arguments":{"code":-32602,"data":{"uri":"x://a"}}}}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"m","data":{"uri":"x://a"}}}` + next},
		{name: "invalid params of a read", script: "$INIT 2025-11-25\n" + `> {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://error","arguments":{"code":-32602}}}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}` + next},
		{name: "input required where it is not allowed", script: "$INIT 2025-06-18\n" + `> {"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"a","value":""}}}
			` + internal + next},
		{name: "progress has messages since 2025-03-26", script: "$INIT 2024-11-05\n" + `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":1}}}
			< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
			< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}
			$OK 1 "done"`},
	})
}

// A change in form that keeps the length is a change.
func TestLegacyAdaptationOfTheSameLength(t *testing.T) {
	for _, more := range []string{``, `,"x":1`, `,"xx":1`, `,"xxx":1`, `,"xxxx":1`, `,"xxxxx":1`} { // one of them has the text's length
		for pad := range 12 {
			content := `{"type":"audio","data":"` + strings.Repeat("AAAA", pad%3) + `","mimeType":"` + strings.Repeat("m", pad) + `"` + more + `}`
			play(t, newTestServer(), transport.ServerOptions{}, "$INIT 2024-11-05\n"+`> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw","arguments":{"content":[`+content+`]}}}
				< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"${t}"}]}}`)
		}
	}
}

func TestLegacyChanges(t *testing.T) {
	tools["publish all"] = func(w *testServer, _ ctx, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
		w.each(func(peer mcp.Peer) bool {
			_ = peer.Change(background, mcp.Notification{Method: mcp.NotificationToolsChanged})
			return true
		})
		return text("published")
	}
	tools["publish resource"] = func(w *testServer, _ ctx, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
		w.each(func(peer mcp.Peer) bool {
			_ = peer.Change(background, mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: []byte(`{"uri":"x://a"}`)})
			return true
		})
		return text("published")
	}
	publish := func(name, id string) string {
		return `> {"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `"}}
			@wait 1s` + "\n"
	}
	changed := `< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"
	updated := `< {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a"}}` + "\n"
	ask := func(method, id, uri, answer string) string {
		return `> {"jsonrpc":"2.0","id":` + id + `,"method":"resources/` + method + `","params":{"uri":"` + uri + `"}}
			< {"jsonrpc":"2.0","id":` + id + `,` + answer + "}\n"
	}
	playAll(t, []row{
		{name: "lists, from initialized on", script: "$INIT 2025-06-18\n" + publish("publish all", "1") + changed + `$OK 1 "published"`},
		{name: "lists once, however often initialized comes", script: "$INIT 2025-06-18\n" + `> {"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + publish("publish all", "1") + changed + `$OK 1 "published"`},
		{name: "subscribe and unsubscribe", script: "$INIT 2025-06-18\n" + ask("subscribe", "1", "x://a", `"result":{}`) +
			publish("publish resource", "2") + updated + updated + `$OK 2 "published"` + "\n" + // testServer publishes on each subscription
			ask("subscribe", "3", "x://a", `"result":{}`) + publish("publish resource", "4") + updated + updated + `$OK 4 "published"` + "\n" +
			ask("unsubscribe", "5", "x://a", `"result":{}`) + publish("publish resource", "6") + updated + `$OK 6 "published"` + "\n" +
			ask("unsubscribe", "7", "x://a", `"result":{}`) + ask("unsubscribe", "8", "x://never", `"result":{}`)},
		{name: "a subscription that the server does not agree to", script: "$INIT 2025-11-25\n" + ask("subscribe", "1", "x://refused", `"error":{"code":-32002,"message":"the server accepts no subscription to x://refused","data":{"uri":"x://refused"}}`) +
			ask("subscribe", "2", "x://failing", `"error":{"code":-32602,"message":"no"}`) + ask("subscribe", "3", "x://a", `"result":{}`)},
		{name: "the reason of a refusal", script: "$INIT 2025-06-18\n" + ask("subscribe", "1", "x://failing?unknown", `"error":{"code":-32002,"message":"resource not found: x://failing?unknown","data":{"uri":"x://failing?unknown"}}`) +
			ask("subscribe", "2", "x://failing?modern", `"error":{"code":-32600,"message":"m"}`) + ask("subscribe", "3", "x://failing?secret", `"error":{"code":-32603,"message":"internal error"}`) +
			ask("subscribe", "4", "x://failing?method", `"error":{"code":-32601,"message":"method not found: resources/subscribe"}`) +
			ask("subscribe", "5", "x://failing?end", `"error":{"code":-32601,"message":"method not found: resources/subscribe"}`)},
		{name: "no uri", script: "@lenient schema\n$INIT 2025-11-25\n" + `> {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":5}}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":$M}}
			> {"jsonrpc":"2.0","id":2,"method":"resources/subscribe"}
			< {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":$M}}`},
	})
}

func TestLegacyAsking(t *testing.T) {
	call := func(r, name string) string {
		return "$INIT " + r + "\n" + `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{"x":1}}}` + "\n"
	}
	question := func(id, mode string) string {
		return `< {"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":{` + mode + `"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}` + "\n"
	}
	accept := `,"result":{"action":"accept","content":{"name":"Ada"}}}` + "\n"
	next := "\n" + `> {"jsonrpc":"2.0","id":9,"method":"ping"}` + "\n" + `< {"jsonrpc":"2.0","id":9,"result":{}}`
	refused := func(why string) string {
		return `< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the client ` + why + `"}],"isError":true}}`
	}
	sampled := `{"role":"assistant","content":{"type":"text","text":"ho"},"model":"m"}`
	playAll(t, []row{
		{name: "2025-11-25", script: call("2025-11-25", "ask") + question("1", `"mode":"form",`) + `> {"jsonrpc":"2.0","id":1` + accept + `$OK 1 "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}, true"` + next},
		{name: "2025-06-18 has no modes", script: call("2025-06-18", "ask") + question("1", ``) + `> {"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}` + "\n" + `$OK 1 "{\"action\":\"decline\"}, true"` + next},
		{name: "several rounds and questions, one after the other", script: call("2025-06-18", "ask twice") + `< {"jsonrpc":"2.0","id":1,"method":"roots/list"}
			> {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
			` + question("2", ``) + `> {"jsonrpc":"2.0","id":2` + accept + `< {"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}}
			> {"jsonrpc":"2.0","id":3,"result":` + sampled + `}
			$OK 1 "2 c {\"x\":1}"` + next},
		{name: "refused", script: call("2025-06-18", "ask") + question("1", ``) + `> {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"User rejected"}}` + "\n" + refused("refused elicitation/create: User rejected") + next},
		{name: "nobody answers", opts: transport.ServerOptions{AskTimeout: 5e9}, script: "@lenient after-end\n" + call("2025-06-18", "ask") + question("1", ``) + `@wait 4s
			@wait 2s
			< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"nobody answered in time"}}
			` + refused("did not answer elicitation/create within 5s") + `
			# an answer that comes too late is nothing
			> {"jsonrpc":"2.0","id":1` + accept + next},
		{name: "cancelled while it asks", script: call("2025-06-18", "ask") + question("1", ``) + `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
			< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the request that asked is over"}}` + next},
		{name: "URL mode has an elicitationId on 2025-11-25", script: call("2025-11-25", "ask url") + `< {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","message":"Go","url":"https://x.test","elicitationId":"${e}"}}
			> {"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
			$OK 1 "{\"action\":\"accept\"}"` + next},
		{name: "a resource asks", script: "$INIT 2025-06-18\n" + `> {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://ask"}}
			` + question("1", ``) + `> {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the client refused elicitation/create: no"}}` + next},
		{name: "state alone is tried again later", script: call("2025-06-18", "later") + `@wait 40ms
			@wait 400ms
			$OK 1 "done"` + next},
		{name: "an answer that is not a message", script: "@lenient schema framing\n" + call("2025-06-18", "ask") + question("1", ``) + `> {"jsonrpc":"2.0","id":1,"result":"yes"}` + "\n" + refused("refused elicitation/create: result must be an object") + next},
		{name: "an answer with neither result nor error", script: "@lenient schema framing\n" + call("2025-06-18", "ask") + question("1", ``) + `> {"jsonrpc":"2.0","id":1,"error":{"message":"no"}}` + "\n" + refused("refused elicitation/create: error must have an integer code and a message") + next},
		{name: "an answer with a string for the number", script: "@lenient response-id\n" + call("2025-06-18", "ask") + question("1", ``) + `> {"jsonrpc":"2.0","id":"1"` + accept + `$OK 1 "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}, true"` + next},
		{name: "two answers", script: "@lenient after-end\n" + call("2025-06-18", "ask") + question("1", ``) + `> {"jsonrpc":"2.0","id":1` + accept + `$OK 1 "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}, true"
			> {"jsonrpc":"2.0","id":1` + accept + next},
	})
	script := call("2025-06-18", "ask for ever")
	for i := range 100 {
		script += fmt.Sprintf("< {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"roots/list\"}\n> {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"roots\":[]}}\n", i+1, i+1)
	}
	play(t, newTestServer(), transport.ServerOptions{}, script+`< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"tools/call has asked for input 100 times, the maximum for one call"}],"isError":true}}`+next)
}

func TestBothErasAtOnce(t *testing.T) {
	play(t, newTestServer(), transport.ServerOptions{}, `
		> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"request",$META}}
		< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"2026-07-28|{}||||"}]}}
		$INIT 2025-06-18
		> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"request",$META}}
		< {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"2026-07-28|{}||||"}]}}
		> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{}}}
		$OK 3 "{}"
		> {"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},$META}}
		< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":4},"notifications":{"toolsListChanged":true}}}
		> {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"publish all"}}
		@wait 1s
		< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
		< {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":4}}}
		$OK 5 "published"
		> {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"ask",$FULL}}
		< {"jsonrpc":"2.0","id":6,"result":{"resultType":"input_required","inputRequests":"${q}"}}
		> {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask"}}
		< {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":"${p}"}
		> {"jsonrpc":"2.0","id":1,"result":{"action":"cancel"}}
		$OK 7 "{\"action\":\"cancel\"}, true"
		> {"jsonrpc":"2.0","id":8,"method":"ping","params":{$META}}
		< {"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":$M}}`[1:])
}
