package wiretest

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// script is a sequence of frames, one per line, which start with > (client) or < (server). A frame
// that breaks rules is followed by a line with the names of their checks: "! after-end progress".
type script struct {
	name    string
	options Options
	frames  string
}

func (s script) run(t *testing.T) {
	c := NewChecker(s.options)
	lines := strings.Split(strings.TrimSpace(s.frames), "\n")
	for i := 0; i < len(lines); i++ {
		line := expand(strings.TrimSpace(lines[i]))
		if line == "" {
			continue
		}
		var want []string
		if i+1 < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[i+1]), "!") {
			i++
			want = strings.Fields(strings.TrimSpace(lines[i])[1:])
		}
		from := Client
		if line[0] == '<' {
			from = Server
		}
		errs := c.Frame(from, []byte(line[2:]))
		if got := checksOf(t, errs); !slices.Equal(got, want) {
			t.Errorf("%s\nbreaks %v, want %v: %v", line, got, want, errors.Join(errs...))
		}
	}
}

func checksOf(t *testing.T, errs []error) []string {
	var checks []string
	for _, err := range errs {
		var v *Violation
		if !errors.As(err, &v) {
			t.Fatalf("%v is not a Violation", err)
		}
		checks = append(checks, string(v.Check))
	}
	slices.Sort(checks)
	return slices.Compact(checks)
}

// expand replaces the abbreviations in a line of a script.
func expand(line string) string {
	return strings.NewReplacer(
		`{#`, `{"jsonrpc":"2.0"`,
		`META`, modernMeta,
		`SUB(`, `"_meta":{"io.modelcontextprotocol/subscriptionId":`,
		`VERSION`, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
		`CAPS`, `"io.modelcontextprotocol/clientCapabilities"`,
		`OK`, `"resultType":"complete"`,
		`CACHE`, `"ttlMs":0,"cacheScope":"private"`,
	).Replace(line)
}

// handshake returns the frames that open a legacy session of a revision.
func handshake(revision string) string {
	return `
> {#,"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{"form":{}}},"clientInfo":{"name":"c","version":"1"}}}
< {#,"id":0,"result":{"protocolVersion":"` + revision + `","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
> {#,"method":"notifications/initialized"}
`
}

func TestCheckerLegacy(t *testing.T) {
	scripts := []script{
		{"calls", Options{}, handshake("2025-11-25") + `
			> {#,"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}
			< {#,"method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}
			< {#,"method":"notifications/message","params":{"level":"info","data":1}}
			< {#,"id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}
			> {#,"id":1,"result":{"role":"assistant","model":"m","content":{"type":"text","text":""}}}
			< {#,"id":1,"result":{"content":[]}}
			< {#,"method":"notifications/tools/list_changed"}
			< {#,"id":"p","method":"ping"}
			> {#,"id":"p","result":{}}`},
		{"revision decides the schema", Options{}, handshake("2024-11-05") + `
			> {#,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {#,"id":1,"result":{"content":[{"type":"audio","mimeType":"audio/wav","data":""}]}}
			! schema`},
		{"modern fields", Options{}, handshake("2025-06-18") + `
			> {#,"id":1,"method":"tools/list","params":{"requestState":"s"}}
			! legacy
			< {#,"id":1,"result":{"tools":[],OK,CACHE}}
			! legacy
			> {#,"id":2,"method":"tools/call","params":{"name":"a"}}
			< {#,"id":2,"result":{"content":[],"inputRequests":{}}}
			! legacy`},
		{"before the handshake ends", Options{}, `
			> {#,"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			> {#,"id":1,"method":"ping"}
			> {#,"id":2,"method":"tools/list"}
			! lifecycle
			< {#,"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
			< {#,"id":1,"method":"roots/list"}
			! capability lifecycle
			> {#,"method":"notifications/initialized"}
			> {#,"id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			! lifecycle`},
		{"a ping before the handshake", Options{}, `
			> {#,"id":"p","method":"ping"}
			< {#,"id":"p","result":{}}` + handshake("2025-06-18")},
		{"modern revision negotiated", Options{}, `
			> {#,"id":0,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			< {#,"id":0,"result":{"protocolVersion":"2026-07-28","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
			! lifecycle`},
		{"initialize refused, then accepted", Options{}, `
			> {#,"id":0,"method":"initialize","params":{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			< {#,"id":0,"error":{"code":-32602,"message":"no"}}
			> {#,"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			< {#,"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`},
		{"ids", Options{}, handshake("2025-11-25") + `
			> {#,"id":1,"method":"ping"}
			> {#,"id":1,"method":"ping"}
			! request-id
			< {#,"id":1,"result":{}}
			< {#,"id":1,"result":{}}
			! after-end
			> {#,"id":1,"method":"ping"}
			! request-id
			< {#,"id":"1","result":{}}
			! response-id
			> {#,"id":5,"result":{}}
			! response-id
			< {#,"error":{"code":-32600,"message":"m"}}
			! response-id`},
		{"same id both ways", Options{}, handshake("2025-11-25") + `
			> {#,"id":1,"method":"ping"}
			< {#,"id":1,"method":"ping"}
			> {#,"id":1,"result":{}}
			< {#,"id":1,"result":{}}`},
		{"cancellation", Options{}, handshake("2025-11-25") + `
			> {#,"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}
			> {#,"method":"notifications/cancelled","params":{"requestId":1}}
			< {#,"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
			! after-end
			< {#,"id":1,"result":{"content":[]}}
			! after-end
			> {#,"method":"notifications/cancelled","params":{"requestId":1}}
			! after-end
			> {#,"method":"notifications/cancelled","params":{"requestId":0}}
			! cancellation
			> {#,"method":"notifications/cancelled","params":{"requestId":7}}
			! cancellation
			> {#,"id":2,"method":"ping"}
			< {#,"method":"notifications/cancelled","params":{"requestId":2}}
			! cancellation
			< {#,"id":2,"result":{}}
			> {#,"method":"notifications/cancelled","params":{"requestId":2}}`},
		{"progress", Options{}, handshake("2025-11-25") + `
			> {#,"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}
			> {#,"id":2,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}
			! request-id
			< {#,"method":"notifications/progress","params":{"progressToken":"t","progress":9007199254740992}}
			< {#,"method":"notifications/progress","params":{"progressToken":"t","progress":9007199254740993}}
			< {#,"method":"notifications/progress","params":{"progressToken":"t","progress":9007199254740993.0}}
			! progress
			< {#,"method":"notifications/progress","params":{"progressToken":"u","progress":1}}
			! progress
			< {#,"id":2,"result":{"content":[]}}
			< {#,"method":"notifications/progress","params":{"progressToken":"t","progress":1e300}}
			! after-end`},
		{"progress of a task goes on", Options{}, handshake("2025-11-25") + `
			> {#,"id":1,"method":"tools/call","params":{"name":"a","task":{},"_meta":{"progressToken":"t"}}}
			> {#,"method":"notifications/cancelled","params":{"requestId":1}}
			! cancellation
			< {#,"id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"","lastUpdatedAt":"","ttl":null}}}
			< {#,"method":"notifications/progress","params":{"progressToken":"t","progress":1}}`},
		{"capabilities", Options{}, handshake("2025-11-25") + `
			< {#,"id":1,"method":"roots/list"}
			! capability
			< {#,"id":2,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}
			! capability
			< {#,"id":3,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}
			< {#,"id":4,"method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":"https://a.example/","message":"m"}}
			! capability`},
		{"batches", Options{}, handshake("2025-03-26") + `
			> [{#,"id":1,"method":"ping"},{#,"id":2,"method":"tools/list"}]
			< [{#,"id":2,"result":{"tools":[]}},{#,"id":1,"result":{}}]
			> []
			! batching
			> [{#,"id":3,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}]
			! batching lifecycle`},
		{"batch of another revision", Options{}, handshake("2025-06-18") + `
			> [{#,"id":1,"method":"ping"}]
			! batching
			< {#,"error":{"code":-32600,"message":"no batches"}}`},
		{"framing", Options{}, handshake("2025-06-18") + `
			> {"jsonrpc"
			! framing
			< {#,"error":{"code":-32700,"message":"m"}}
			< {#,"error":{"code":-32700,"message":"m"}}
			! response-id
			> {#,"id":null,"method":"ping"}
			! schema
			< {#,"error":{"code":-32600,"message":"m"}}`},
		{"codes", Options{}, handshake("2025-06-18") + `
			> {#,"id":1,"method":"ping"}
			< {#,"id":1,"error":{"code":-32042,"message":"m"}}
			! error-code
			> {#,"id":2,"method":"ping"}
			< {#,"id":2,"error":{"code":-32002,"message":"m"}}
			> {#,"id":3,"method":"ping"}
			< {#,"id":3,"error":{"code":-32200,"message":"m"}}
			! error-code`},
		{"seen from the middle", Options{Revision: "2025-06-18"}, `
			> {#,"id":1,"method":"tools/list"}
			< {#,"id":1,"method":"roots/list"}
			< {#,"id":1,"result":{"tools":[]}}
			> {#,"id":1,"result":{"roots":[]}}`},
	}
	for _, s := range scripts {
		t.Run(s.name, s.run)
	}
}

func TestCheckerModern(t *testing.T) {
	scripts := []script{
		{"calls", Options{}, `
			> {#,"id":1,"method":"server/discover","params":{META}}
			< {#,"id":1,"result":{OK,CACHE,"supportedVersions":["2026-07-28"],"capabilities":{}}}
			> {#,"id":1,"method":"tools/call","params":{"name":"a","_meta":{VERSION,CAPS:{"elicitation":{}},"progressToken":1,"io.modelcontextprotocol/logLevel":"info"}}}
			< {#,"method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}
			< {#,"method":"notifications/message","params":{"level":"warning","data":1}}
			< {#,"method":"notifications/message","params":{"level":"debug","data":1}}
			! log
			< {#,"id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}}}}
			> {#,"id":2,"method":"tools/call","params":{"name":"a","inputResponses":{"k":{"action":"decline"}},META}}
			< {#,"method":"notifications/message","params":{"level":"warning","data":1}}
			! log
			< {#,"id":2,"result":{OK,"content":[]}}`},
		{"without meta", Options{}, `
			> {#,"id":1,"method":"tools/list"}
			! meta schema
			> {#,"id":2,"method":"x/y","params":{"_meta":{VERSION}}}
			! meta
			< {#,"id":2,"result":{OK}}`},
		{"unsupported version", Options{}, `
			> {#,"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01",CAPS:{}}}}
			< {#,"id":1,"error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"1900-01-01"}}}`},
		{"result types", Options{ResultTypes: []string{"task"}}, `
			> {#,"id":1,"method":"tools/call","params":{"name":"a",META}}
			< {#,"id":1,"result":{"content":[]}}
			! result-type schema
			> {#,"id":2,"method":"tools/call","params":{"name":"a",META}}
			< {#,"id":2,"result":{"resultType":"other"}}
			! result-type
			> {#,"id":3,"method":"tools/call","params":{"name":"a",META}}
			< {#,"id":3,"result":{"resultType":"task"}}
			> {#,"id":4,"method":"tools/call","params":{"name":"a",META}}
			< {#,"id":4,"result":{"resultType":"input_required"}}
			! result-type
			> {#,"id":5,"method":"tools/list","params":{META}}
			< {#,"id":5,"result":{"resultType":"input_required","requestState":"s",CACHE}}
			! cache result-type
			> {#,"id":6,"method":"tools/call","params":{"name":"a",META}}
			< {#,"id":6,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}}
			! capability`},
		{"caching", Options{Off: []Check{Schema}}, `
			> {#,"id":1,"method":"resources/read","params":{"uri":"a:b",META}}
			< {#,"id":1,"result":{OK,"contents":[]}}
			! cache
			> {#,"id":2,"method":"prompts/get","params":{"name":"a",META}}
			< {#,"id":2,"result":{OK,"messages":[]}}`},
		{"the server asks, the client answers", Options{}, `
			> {#,"id":1,"method":"tools/call","params":{"name":"a",META}}
			< {#,"id":1,"method":"ping"}
			! direction
			< {#,"id":1,"result":{OK,"content":[]}}
			> {#,"id":9,"result":{OK}}
			! direction response-id`},
		{"ids", Options{}, `
			> {#,"id":1,"method":"tools/call","params":{"name":"a",META}}
			> {#,"id":1,"method":"tools/call","params":{"name":"a",META}}
			! request-id
			< {#,"id":1.0,"result":{OK,"content":[]}}
			< {#,"id":1,"result":{OK,"content":[]}}
			! after-end
			> {#,"id":1,"method":"tools/call","params":{"name":"a",META}}
			> {#,"method":"notifications/cancelled","params":{"requestId":1}}
			< {#,"id":1,"result":{OK,"content":[]}}
			! after-end`},
		{"subscriptions", Options{}, `
			> {#,"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]},META}}
			< {#,"method":"notifications/tools/list_changed","params":{SUB("l"}}}
			! subscription
			< {#,"method":"notifications/subscriptions/acknowledged","params":{SUB("l"},"notifications":{"toolsListChanged":true,"promptsListChanged":true}}}
			! subscription
			< {#,"method":"notifications/tools/list_changed","params":{SUB("l"}}}
			< {#,"method":"notifications/resources/updated","params":{SUB("l"},"uri":"a:b"}}
			! subscription
			< {#,"method":"notifications/resources/list_changed","params":{SUB("l"}}}
			! subscription
			< {#,"method":"notifications/tools/list_changed","params":{SUB("x"}}}
			! subscription
			< {#,"method":"notifications/tools/list_changed"}
			! subscription
			< {#,"method":"notifications/subscriptions/acknowledged","params":{SUB("l"},"notifications":{}}}
			! subscription
			< {#,"id":"l","result":{OK,SUB("m"}}}
			! subscription
			< {#,"method":"notifications/cancelled","params":{"requestId":"l"}}
			< {#,"method":"notifications/cancelled","params":{"requestId":"l"}}
			! after-end
			< {#,"method":"notifications/tools/list_changed","params":{SUB("l"}}}
			! after-end`},
		{"subscription that ends at once", Options{}, `
			> {#,"id":1,"method":"subscriptions/listen","params":{"notifications":{},META}}
			< {#,"id":1,"result":{OK,SUB(1}}}
			! subscription`},
		{"subscription id where none belongs", Options{}, `
			> {#,"id":1,"method":"subscriptions/listen","params":{"notifications":{},META}}
			> {#,"id":2,"method":"tools/call","params":{"name":"a","_meta":{VERSION,CAPS:{},"progressToken":2}}}
			< {#,"method":"notifications/progress","params":{"progressToken":2,"progress":1,SUB(1}}}
			! subscription`},
		{"a server cancels a call", Options{}, `
			> {#,"id":1,"method":"tools/call","params":{"name":"a",META}}
			< {#,"method":"notifications/cancelled","params":{"requestId":1}}
			! cancellation`},
		{"codes", Options{}, `
			> {#,"id":1,"method":"resources/read","params":{"uri":"a:b",META}}
			< {#,"id":1,"error":{"code":-32002,"message":"m"}}
			! error-code
			> {#,"id":2,"method":"resources/read","params":{"uri":"a:b",META}}
			< {#,"id":2,"error":{"code":-32042,"message":"m"}}
			! error-code
			> {#,"id":3,"method":"resources/read","params":{"uri":"a:b",META}}
			< {#,"id":3,"error":{"code":-32023,"message":"m"}}
			! error-code
			> {#,"id":4,"method":"resources/read","params":{"uri":"a:b",META}}
			< {#,"id":4,"error":{"code":-31000,"message":"m"}}
			> {#,"id":5,"method":"resources/read","params":{"uri":"a:b",META}}
			< {#,"id":5,"error":{"code":-32603,"message":"m"}}`},
		{"probe, then legacy", Options{}, `
			> {#,"id":"probe","method":"server/discover","params":{META}}
			< {#,"id":"probe","error":{"code":-32601,"message":"m"}}` + handshake("2025-06-18") + `
			> {#,"id":1,"method":"tools/list"}
			< {#,"id":1,"result":{"tools":[]}}`},
		{"both eras at once", Options{}, handshake("2025-06-18") + `
			> {#,"id":1,"method":"tools/list"}
			> {#,"id":2,"method":"tools/list","params":{META}}
			< {#,"id":2,"result":{OK,CACHE,"tools":[]}}
			< {#,"id":1,"result":{"tools":[]}}
			< {#,"method":"notifications/tools/list_changed"}
			> {#,"id":3,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},META}}
			< {#,"id":3,"method":"ping"}
			< {#,"method":"notifications/subscriptions/acknowledged","params":{SUB(3},"notifications":{"toolsListChanged":true}}}
			> {#,"id":3,"result":{}}
			< {#,"method":"notifications/cancelled","params":{"requestId":3}}
			< {#,"method":"notifications/tools/list_changed","params":{SUB(3}}}
			! after-end`},
	}
	for _, s := range scripts {
		t.Run(s.name, s.run)
	}
}

func TestCheckerLineBreaks(t *testing.T) {
	c := NewChecker()
	frame := expand(`{#,"id":1,` + "\n" + `"method":"tools/list","params":{META}}`)
	if got := checksOf(t, c.Frame(Client, []byte(frame))); !slices.Equal(got, []string{"framing"}) {
		t.Errorf("breaks %v", got)
	}
	if open := c.Open(Client); !slices.Equal(open, []string{"1"}) {
		t.Errorf("open: %v, want the request, although its frame was malformed", open)
	}
}

func TestCheckerOff(t *testing.T) {
	frame := []byte(expand(`{#,"id":1,"result":{OK}}`)) // answers no request
	for _, test := range []struct {
		options Options
		want    int
	}{
		{Options{}, 1},
		{Options{Off: []Check{ResponseID}}, 0},
		{Options{OffServer: []Check{ResponseID}}, 0},
		{Options{OffClient: []Check{ResponseID}}, 1},
		{Options{Off: []Check{AfterEnd}}, 1},
	} {
		if errs := NewChecker(test.options).Frame(Server, frame); len(errs) != test.want {
			t.Errorf("%+v: %v, want %d violations", test.options, errs, test.want)
		}
	}
}

func TestCheckerAbandon(t *testing.T) {
	c := NewChecker()
	c.Frame(Client, []byte(expand(`{#,"id":"a","method":"tools/list","params":{META}}`)))
	c.Abandon(Client, []byte(`"a"`))
	c.Abandon(Client, []byte(`"b"`))
	if open := c.Open(Client); len(open) != 0 {
		t.Errorf("open: %v", open)
	}
	errs := c.Frame(Server, []byte(expand(`{#,"id":"a","result":{OK,CACHE,"tools":[]}}`)))
	if got := checksOf(t, errs); !slices.Equal(got, []string{"after-end"}) {
		t.Errorf("breaks %v", got)
	}
}

func TestViolation(t *testing.T) {
	errs := NewChecker().Frame(Server, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"`+strings.Repeat("x", 999)+`"}}`))
	if len(errs) != 1 {
		t.Fatal(errs)
	}
	text := errs[0].Error()
	if !strings.HasPrefix(text, "response-id: server") || len(text) > 500 {
		t.Errorf("%s", text)
	}
}

func TestNewCheckerRefusesModernRevision(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewChecker(Options{Revision: firstModern})
}

// FuzzChecker checks that no pair of frames makes the Checker panic.
func FuzzChecker(f *testing.F) {
	f.Add(expand(`{#,"id":1,"method":"tools/call","params":{"name":"a",META}}`), expand(`{#,"id":1,"result":{OK}}`))
	f.Add(expand(`{#,"id":1e999999999,"method":"ping"}`), expand(`{#,"method":"notifications/progress","params":{"progressToken":-1e999999999,"progress":1e-999999999}}`))
	f.Add(`[]`, `[{"method":"initialize"},[],null]`)
	f.Fuzz(func(t *testing.T, first, second string) {
		c := NewChecker()
		c.Frame(Client, []byte(first))
		c.Frame(Server, []byte(second))
		c.Frame(Client, []byte(second))
	})
}
