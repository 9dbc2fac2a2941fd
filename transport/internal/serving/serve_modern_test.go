package serving_test

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

const (
	version      = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	capabilities = `"io.modelcontextprotocol/clientCapabilities":{}`
	supported    = `"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
)

// An error in the metadata of a request fails that request only.
func TestModernMeta(t *testing.T) {
	const invalid = `"error":{"code":-32602,"message":$M}`
	for _, tt := range []struct{ name, params, answer string }{
		{"all", `{"_meta":{` + version + `,` + capabilities + `},"name":"request"}`, `2026-07-28|{}||||`},
		{"everything", `{"name":"request","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"progressToken":"p","io.modelcontextprotocol/logLevel":"warning","traceparent":"x",` +
			`"io.modelcontextprotocol/clientCapabilities":{"roots":{}},` + version + `}}`, `2026-07-28|{"roots":{}}|{"name":"c","version":"1"}|"p"|warning|`},
		{"an integer token", `{"name":"request","_meta":{"progressToken":0,` + version + `,` + capabilities + `}}`, `2026-07-28|{}||0||`},
		{"no _meta", `{"name":"request"}`, invalid},
		{"no params", ``, invalid},
		{"_meta is empty", `{"_meta":{},"name":"request"}`, invalid},
		{"_meta is null", `{"_meta":null,"name":"request"}`, invalid},
		{"_meta is a list", `{"_meta":[],"name":"request"}`, invalid},
		{"no version", `{"_meta":{` + capabilities + `},"name":"request"}`, invalid},
		{"version is a number", `{"_meta":{"io.modelcontextprotocol/protocolVersion":20260728,` + capabilities + `}}`, invalid},
		{"version is null", `{"_meta":{"io.modelcontextprotocol/protocolVersion":null,` + capabilities + `}}`, invalid},
		{"version is empty", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"",` + capabilities + `}}`, invalid},
		{"no capabilities", `{"_meta":{` + version + `},"name":"request"}`, invalid},
		{"capabilities are null", `{"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":null}}`, invalid},
		{"capabilities are a list", `{"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":[]}}`, invalid},
		{"capabilities are text", `{"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":"{}"}}`, invalid},
		{"unknown level", `{"_meta":{` + version + `,` + capabilities + `,"io.modelcontextprotocol/logLevel":"verbose"}}`, invalid},
		{"level is a number", `{"_meta":{` + version + `,` + capabilities + `,"io.modelcontextprotocol/logLevel":3}}`, invalid},
		{"token is an object", `{"_meta":{` + version + `,` + capabilities + `,"progressToken":{}}}`, invalid},
		{"token is null", `{"_meta":{` + version + `,` + capabilities + `,"progressToken":null}}`, invalid},
		{"unknown version", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01",` + capabilities + `}}`, `"error":{"code":-32022,"message":$M,"data":{"requested":"1900-01-01",` + supported + `}}`},
		{"a version to come", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01",` + capabilities + `}}`, `"error":{"code":-32022,"message":$M,"data":{"requested":"2099-01-01",` + supported + `}}`},
		{"a legacy version", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25",` + capabilities + `}}`, `"error":{"code":-32022,"message":$M,"data":{"requested":"2025-11-25",` + supported + `}}`},
		{"an unknown version before capabilities", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01"}}`, `"error":{"code":-32022,"message":$M,"data":{"requested":"1900-01-01",` + supported + `}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params, answer := `,"params":`+tt.params, `< {"jsonrpc":"2.0","id":1,`+tt.answer+`}`
			if tt.params == "" {
				params = ""
			}
			if !strings.HasPrefix(tt.answer, `"error"`) {
				answer = `$OK 1 "` + strings.ReplaceAll(tt.answer, `"`, `\"`) + `"`
			}
			play(t, newTestServer(), transport.ServerOptions{}, `@lenient schema meta
				> {"jsonrpc":"2.0","id":1,"method":"tools/call"`+params+`}
				`+answer+`
				> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":1.0},$META}}
				$OK 2 "{\"a\":1.0}"`)
		})
	}
}

func TestModernMethods(t *testing.T) {
	for method, params := range map[string]string{
		"initialize": `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}`, "ping": ``, "logging/setLevel": `"level":"info"`,
		"resources/subscribe": `"uri":"x://a"`, "resources/unsubscribe": `"uri":"x://a"`, "no/such": ``, "roots/list": ``,
	} {
		t.Run(method, func(t *testing.T) {
			if params != "" {
				params += ","
			}
			play(t, newTestServer(), transport.ServerOptions{}, `@lenient schema direction lifecycle
				> {"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`$META}}
				< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":$M}}
				> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo",$META}}
				$OK 2 ""`)
		})
	}
}

func TestModernResults(t *testing.T) {
	call := func(id, name, arguments string) string {
		return `> {"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `,$META}}` + "\n"
	}
	internal := `< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`
	unencodable := `< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":$M}}`
	next := "\n" + call("2", "echo", `{}`) + `$OK 2 "{}"`
	playAll(t, []row{
		{name: "discover", script: `> {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{$META}}
			< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"w","version":"1","title":"W"}},` +
			`"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"completions":{},"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{},"logging":{}},"instructions":"be kind"}}`},
		{name: "caching hints", script: `> {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META}}
			< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":1500,"cacheScope":"public","tools":[]}}`},
		{name: "panic", script: call("1", "panic", `{}`) + internal + next},
		{name: "plain error", script: call("1", "plain error", `{}`) + internal + next},
		{name: "neither result nor error", script: call("1", "nothing", `{}`) + internal + next},
		{name: "an unencodable value: a panic", script: call("1", "value", `{"of":"a panic"}`) + unencodable + next},
		{name: "an unencodable value: a nil pointer", script: call("1", "value", `{"of":"a nil pointer"}`) + unencodable + next},
		{name: "an unencodable value: a nil struct", script: call("1", "value", `{"of":"a nil struct"}`) + unencodable + next},
		{name: "an unencodable value: text", script: call("1", "value", `{"of":"text"}`) + unencodable + next},
		{name: "an unencodable value: a number", script: call("1", "value", `{"of":"a number"}`) + unencodable + next},
		{name: "an unencodable value: a list", script: call("1", "value", `{"of":"a list"}`) + unencodable + next},
		{name: "an unencodable value: a channel", script: call("1", "value", `{"of":"a channel"}`) + unencodable + next},
		{name: "an unencodable value: half-made content", script: call("1", "value", `{"of":"half-made content"}`) + unencodable + next},
		{name: "a map", script: call("1", "value", `{"of":"a map"}`) + `< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}` + next},
		{name: "a raw value", script: call("1", "value", `{"of":"raw"}`) + `< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}` + next},
		{name: "meta first", script: call("1", "value", `{"of":"meta first"}`) + `< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"k":1},"content":[]}}` + next},
		{name: "text that is not UTF-8", script: call("1", "value", `{"of":"bad text"}`) + `< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"a` + "\ufffd" + `"}]}}` + next},
		{name: "raw, with what is the edge's", script: call("1", "raw", `{"resultType":"x","content":[],"ttlMs":5,"cacheScope":"public","unknown":[1.0],"_meta":{"io.modelcontextprotocol/subscriptionId":1,"io.modelcontextprotocol/serverInfo":{"name":"up","version":"2"},"k":1}}`) +
			`< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"unknown":[1.0],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up","version":"2"},"k":1}}}` + next},
		{name: "raw, with the server's own info", script: call("1", "raw with info", `{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up","version":"2"}}}`) +
			`< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"w","version":"1"}}}}` + next},
		{name: "raw, with only the edge's", script: call("1", "raw with info", `{"content":[],"ttlMs":1}`) +
			`< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"w","version":"1"}}}}` + next},
		{name: "a capability is missing", script: call("1", "capable", `{}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":$M,"data":{"requiredCapabilities":{"roots":{}}}}}` + next},
		{name: "an error with data", script: call("1", "error", `{"code":-32602,"data":{"a":[1]}}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":{"a":[1]}}}` + next},
		{name: "an error of one's own", script: call("1", "error", `{"code":7}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"m"}}` + next},
		{name: "a legacy code: resource not found", script: call("1", "error", `{"code":-32002,"data":{"uri":"x"}}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":{"uri":"x"}}}` + next},
		{name: "a legacy code: URL elicitation", script: call("1", "error", `{"code":-32042,"data":{}}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":{}}}` + next},
		{name: "a reserved code that nothing defines", script: call("1", "error", `{"code":-32050}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m"}}` + next},
		{name: "the last reserved code", script: call("1", "error", `{"code":-32099}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m"}}` + next},
		{name: "a time to live below zero", script: `> {"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{$META}}
			< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","prompts":[]}}`},
		{name: "input that the client has not declared", script: call("1", "ask", `{}`) + `< {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":$M,"data":{"requiredCapabilities":{"elicitation":{}}}}}` + next},
		{name: "input required", script: `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask",$FULL}}
			< {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":"${who}"}}}}
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","inputResponses":{"who":{"action":"decline"}},$META}}
			$OK 2 "{\"action\":\"decline\"}, true"`, opts: transport.ServerOptions{}},
		{name: "input required with state alone", script: call("1", "later", `{}`) + `< {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"x"}}`},
		{name: "input required with nothing", script: call("1", "ask nothing", `{}`) + internal + next},
		{name: "input required where it is not allowed", script: `> {"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"a","value":""},$META}}
			` + internal + next},
		{name: "progress", script: `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","_meta":{` + version + `,` + capabilities + `,"progressToken":"p\n"}}}
			< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p\n","progress":1,"message":"m"}}
			< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p\n","progress":2,"message":"m"}}
			$OK 1 "done"`},
		{name: "a change outside a subscription", script: call("1", "change", `{}`) + `$OK 1 "a change belongs on subscriptions/listen, not on tools/call"`},
		{name: "principal", opts: transport.ServerOptions{Principal: mcp.Principal{ID: "ada"}}, script: call("1", "request", `{}`) + `$OK 1 "2026-07-28|{}||||ada"`},
		{name: "ids", script: call(`"a/é"`, "echo", `{}`) + `$OK "a/é" "{}"` + "\n" + call(`-5`, "echo", `{}`) + `$OK -5 "{}"` + "\n" +
			call(`9007199254740993`, "echo", `{}`) + `$OK 9007199254740993 "{}"` + "\n" + call(`123456789012345678901234567890`, "echo", `{}`) + `$OK 123456789012345678901234567890 "{}"` + "\n" + call(`""`, "echo", `{}`) + `$OK "" "{}"`},
	})
}

// JSON of a handler that is broken or not UTF-8 does not reach the client.
func TestBrokenJSONStaysHere(t *testing.T) {
	const unencodable = `< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the result could not be encoded"}}`
	answers := map[string]string{"structured": unencodable, "input": unencodable, "raw": unencodable, "info": unencodable,
		"data": `< {"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"m"}}`, "notification": `$OK 1 "true"`}
	for field, answer := range answers {
		for _, broken := range []string{`{\"a\":`, `{\"a\":\"FF\"}`, `{}{}`, `{\"a\":1`, ``, `{'a':1}`} {
			t.Run(field+" "+broken, func(t *testing.T) {
				call := `"method":"tools/call","params":{"name":"broken","arguments":{"field":"` + field + `","json":"` + broken + `"}`
				for revision, start := range map[string]string{"modern": "", "legacy": "$INIT 2025-11-25\n"} {
					if revision == "legacy" && field == "info" {
						continue // legacy results have none
					}
					meta := map[string]string{"modern": ",$META"}[revision]
					talk(t, newTestServer(), transport.ServerOptions{}, start+`> {"jsonrpc":"2.0","id":1,`+call+meta+"}}\n"+answer)
				}
			})
		}
	}
}

func TestModernSubscriptions(t *testing.T) {
	w := newTestServer()
	tools["publish"] = func(w *testServer, _ ctx, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
		w.each(func(peer mcp.Peer) bool {
			_ = peer.Change(background, mcp.Notification{Method: mcp.NotificationToolsChanged})
			_ = peer.Change(background, mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: []byte(`{"uri":"x://a","_meta":{"io.modelcontextprotocol/subscriptionId":99,"theirs":1}}`)})
			return true
		})
		return text("published")
	}
	tools["shut"] = func(w *testServer, _ ctx, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
		w.each(func(mcp.Peer) bool { return false })
		return text("shut")
	}
	tagged := func(method, id, more string) string {
		return `< {"jsonrpc":"2.0","method":"notifications/` + method + `","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}` + more + `}}`
	}
	updated := func(id string) string {
		return strings.Replace(tagged("resources/updated", id, `,"uri":"x://a"`), `}`, `,"theirs":1}`, 1)
	}
	publish := `> {"jsonrpc":"2.0","id":"p","method":"tools/call","params":{"name":"publish",$META}}
		@wait 1s`
	play(t, w, transport.ServerOptions{}, `
		> {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x://a"]},$META}}
		`+tagged("subscriptions/acknowledged", "1", `,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x://a"]}`)+`
		> {"jsonrpc":"2.0","id":"two","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x://b"]},$META}}
		`+tagged("subscriptions/acknowledged", `"two"`, `,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x://b"]}`)+`
		`+publish+`
		`+tagged("tools/list_changed", "1", ``)+`
		`+updated("1")+`
		`+tagged("tools/list_changed", `"two"`, ``)+`
		`+updated(`"two"`)+`
		$OK "p" "published"
		`+publish+`
		`+tagged("tools/list_changed", "1", ``)+`
		`+updated("1")+`
		`+tagged("tools/list_changed", `"two"`, ``)+`
		`+updated(`"two"`)+`
		$OK "p" "published"
		# the client ends one: nothing more comes for it, no response either
		> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
		`+publish+`
		`+tagged("tools/list_changed", `"two"`, ``)+`
		`+updated(`"two"`)+`
		$OK "p" "published"
		# the server ends the other: its result, then the cancellation
		> {"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"shut",$META}}
		@wait 1s
		< {"jsonrpc":"2.0","id":"two","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"two"}}}
		< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"two"}}
		$OK "s" "shut"
		# and a refused one has an error alone
		> {"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x://failing"]},$META}}
		< {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no"}}`)
	if got := w.seen(); got != "listen: cancelled by the client" {
		t.Errorf("the handlers saw %s", got)
	}
}
