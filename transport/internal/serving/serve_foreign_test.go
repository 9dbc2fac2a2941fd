package serving_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// mayHoldEdgeMembers is a handler that answers every method of the extension acme with one result,
// and core methods as testServer does.
type mayHoldEdgeMembers struct {
	*testServer
	result     mcp.Result
	extensions []mcp.Extension
}

func (f mayHoldEdgeMembers) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if strings.HasPrefix(req.Method, "acme/") || f.result.Type != "" && req.Method == mcp.MethodCallTool {
		res := f.result
		return &res, nil
	}
	return f.testServer.ServeMCP(ctx, req)
}

func (f mayHoldEdgeMembers) Extensions() []mcp.Extension { return f.extensions }

type ownResult struct {
	A     int    `json:"a"`
	TTL   int    `json:"ttlMs"`
	Scope string `json:"cacheScope"`
}

// What belongs to the edge in the core's results belongs to the handler in its own.
func TestResultsThatAreNotTheCores(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up","version":"9"},"io.modelcontextprotocol/subscriptionId":7`
	refused := `"error":{"code":-32603,"message":"the result is of type \"task\", which revision 2025-06-18 does not have"}`
	for _, tt := range []struct {
		name, method   string
		result         mcp.Result
		modern, legacy string
	}{
		{"a value", "acme/x", mcp.Result{Value: ownResult{1, 5, "team"}}, `"result":{"resultType":"complete","a":1,"ttlMs":5,"cacheScope":"team"}`, `"result":{"a":1,"ttlMs":5,"cacheScope":"team"}`},
		{"a map", "acme/x", mcp.Result{Value: map[string]any{"resultType": "x", "ttlMs": 5}}, `"result":{"resultType":"complete","ttlMs":5}`, `"result":{"ttlMs":5}`},
		{"raw", "acme/x", mcp.Result{Raw: json.RawMessage(`{"resultType":"x","ttlMs":5,"cacheScope":1.0,` + meta + `,"k":1},"a":1}`)},
			`"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up","version":"9"},"k":1},"ttlMs":5,"cacheScope":1.0,"a":1}`,
			`"result":{"ttlMs":5,"cacheScope":1.0,"_meta":{"k":1},"a":1}`},
		{"raw, with the protocol's keys alone", "acme/x", mcp.Result{Raw: json.RawMessage(`{` + meta + `}}`)},
			`"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up","version":"9"}}}`, `"result":{}`},
		{"nothing", "acme/x", mcp.Result{}, `"result":{"resultType":"complete"}`, `"result":{}`},
		{"an extension's type", "tools/call", mcp.Result{Type: "task", Raw: json.RawMessage(`{"taskId":"1","ttlMs":60000,"pollIntervalMs":5}`)},
			`"result":{"resultType":"task","taskId":"1","ttlMs":60000,"pollIntervalMs":5}`, refused},
		{"a type of an extension that the client has not declared", "tools/call", mcp.Result{Type: "vote", Raw: json.RawMessage(`{"voteId":"1"}`)},
			`"error":{"code":-32021,"message":$M,"data":{"requiredCapabilities":{"extensions":{"com.acme/votes":{}}}}}`, strings.Replace(refused, "task", "vote", 1)},
		{"a type of no extension", "tools/call", mcp.Result{Type: "guess", Raw: json.RawMessage(`{}`)},
			`"error":{"code":-32603,"message":"the result is of type \"guess\", which no extension of the server has"}`, strings.Replace(refused, "task", "guess", 1)},
	} {
		h := mayHoldEdgeMembers{testServer: newTestServer(), result: tt.result, extensions: []mcp.Extension{
			{ID: "com.acme/tasks", ResultTypes: []mcp.ResultType{"task"}}, {ID: "com.acme/votes", ResultTypes: []mcp.ResultType{"vote"}},
		}}
		declared := strings.Replace(modernMeta, "{}", `{"extensions":{"com.acme/tasks":{}}}`, 1)
		t.Run(tt.name, func(t *testing.T) {
			talk(t, h, transport.ServerOptions{}, `@lenient result-type
				> {"jsonrpc":"2.0","id":1,"method":"`+tt.method+`","params":{"name":"t",`+declared+`}}
				< {"jsonrpc":"2.0","id":1,`+tt.modern+`}`)
			talk(t, h, transport.ServerOptions{}, "@lenient legacy\n$INIT 2025-06-18\n"+`> {"jsonrpc":"2.0","id":1,"method":"`+tt.method+`","params":{"name":"t"}}
				< {"jsonrpc":"2.0","id":1,`+tt.legacy+`}`)
		})
	}
}

// A handler that knows extensions need not be told to the edge twice.
func TestExtensionsOfTheHandler(t *testing.T) {
	tools["ask acme"] = func(_ *testServer, _ ctx, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
		if p.InputResponses["q"] == nil {
			return ask(nil, map[string]string{"q": `acme/ask {}`})
		}
		return text("%s", p.InputResponses["q"])
	}
	known := []mcp.Extension{{ID: "com.acme/ask", InputRequests: map[string]mcp.ClientCapabilities{"acme/ask": {}}}}
	modern := "@lenient schema\n" + `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask acme",$META}}` + "\n" // which cannot know questions of extensions
	legacy := "$INIT 2025-11-25\n" + `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask acme"}}` + "\n"
	failed := `< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`
	asked := `< {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"acme/ask","params":{}}}}}`
	answered := `< {"jsonrpc":"2.0","id":1,"method":"acme/ask","params":{}}
		> {"jsonrpc":"2.0","id":1,"result":{"yes":1}}
		$OK 1 "{\"yes\":1}"`
	for _, tt := range []struct {
		name           string
		handler, edge  []mcp.Extension
		modern, legacy string
	}{
		{"the handler's", known, nil, asked, answered},
		{"the options win", []mcp.Extension{}, known, asked, answered},
		{"the options win, with less", known, []mcp.Extension{}, failed, failed},
		{"none", nil, nil, failed, failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, opts := mayHoldEdgeMembers{testServer: newTestServer(), extensions: tt.handler}, transport.ServerOptions{Extensions: tt.edge}
			talk(t, h, opts, modern+tt.modern)
			talk(t, h, opts, legacy+tt.legacy)
		})
	}
}

// Before 2025-11-25 a client could not declare that it includes context, and may be asked all the
// same.
func TestSamplingWithContext(t *testing.T) {
	const question = `sampling/createMessage {"messages":[],"maxTokens":5,"includeContext":"thisServer"}`
	tools["ask context"] = func(_ *testServer, _ ctx, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
		if p.InputResponses["q"] == nil {
			return ask(nil, map[string]string{"q": question})
		}
		return text("sampled")
	}
	for _, r := range legacyRevisions {
		t.Run(string(r), func(t *testing.T) {
			answer := `< {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5,"includeContext":"thisServer"}}
				> {"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{"type":"text","text":"ho"},"model":"m"}}
				$OK 1 "sampled"`
			if r == mcp.Revision20251125 {
				answer = `< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"${t}"}],"isError":true}}`
			}
			play(t, newTestServer(), transport.ServerOptions{}, "$INIT "+string(r)+`
				> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask context"}}
				`+answer)
		})
	}
}

// bare offers nothing.
type bare struct{ *testServer }

func (bare) ServeMCP(context.Context, *mcp.Request) (*mcp.Result, error) {
	return &mcp.Result{Value: &mcp.DiscoverResult{SupportedVersions: mcp.Revisions()}}, nil
}

func TestWhatWasNotOffered(t *testing.T) {
	for _, r := range legacyRevisions {
		t.Run(string(r), func(t *testing.T) {
			talk(t, bare{newTestServer()}, transport.ServerOptions{}, `> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+string(r)+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
				< {"jsonrpc":"2.0","id":0,"result":"${r}"}
				> {"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}
				< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: logging/setLevel"}}
				> {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"x://a"}}
				< {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found: resources/subscribe"}}
				> {"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"x://a"}}
				< {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"method not found: resources/unsubscribe"}}
				> {"jsonrpc":"2.0","id":4,"method":"ping"}
				< {"jsonrpc":"2.0","id":4,"result":{}}`)
		})
	}
}

func TestARefusedHandshakeSaysWhatIsSpoken(t *testing.T) {
	play(t, newTestServer(), transport.ServerOptions{Revisions: []mcp.Revision{mcp.Revision20260728}}, `@lenient lifecycle
		> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
		< {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version \"2025-06-18\": this server speaks [2026-07-28]","data":{"requested":"2025-06-18","supported":["2026-07-28"]}}}`)
}
