package mcpwire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/wiretest"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	icons       = `[{"src":"https://x.test/i.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}]`
	annotations = `{"audience":["user","assistant"],"priority":0.5,"lastModified":"2026-01-01T00:00:00Z"}`
	contents    = `[{"type":"text","text":"t","annotations":` + annotations + `,"_meta":{"a":1}},` +
		`{"type":"image","data":"AAAA","mimeType":"image/png","annotations":` + annotations + `,"_meta":{"a":1}},` +
		`{"type":"audio","data":"AAAA","mimeType":"audio/wav","annotations":` + annotations + `,"_meta":{"a":1}},` +
		`{"type":"resource","resource":{"uri":"x://t","mimeType":"text/plain","text":"r","_meta":{"b":1}},"annotations":` + annotations + `,"_meta":{"a":1}},` +
		`{"type":"resource","resource":{"uri":"x://b","blob":"AAAA","_meta":{"b":1}}},` +
		`{"type":"resource_link","uri":"x://l","name":"l","title":"L","description":"d","mimeType":"text/plain","size":3,"icons":` + icons + `,"annotations":` + annotations + `,"_meta":{"a":1}}]`
	info = `{"name":"n","title":"T","version":"1","description":"d","websiteUrl":"https://x.test","icons":` + icons + `}`
)

// full holds a value of each result and of each request's or notification's params with everything
// in it that any revision has; lost lists the fields that a revision lacks, and changed what it
// gets in another form.
type adaptation struct {
	method, full  string
	lost, changed map[mcp.Revision]string
}

var every = []mcp.Revision{mcp.Revision20241105, mcp.Revision20250326, mcp.Revision20250618, mcp.Revision20251125, mcp.Revision20260728}

// upTo gives each revision up to last the same list.
func upTo(last mcp.Revision, list string) map[mcp.Revision]string {
	m := map[mcp.Revision]string{}
	for _, r := range every {
		if r <= last {
			m[r] = list
		}
	}
	return m
}

// also joins lists by revision.
func also(maps ...map[mcp.Revision]string) map[mcp.Revision]string {
	out := map[mcp.Revision]string{}
	for _, m := range maps {
		for r, list := range m {
			out[r] = strings.TrimSpace(out[r] + " " + list)
		}
	}
	return out
}

const (
	r1 = mcp.Revision20241105
	r2 = mcp.Revision20250326
	r3 = mcp.Revision20250618
	r4 = mcp.Revision20251125
)

var results = []adaptation{
	{
		method: "initialize",
		full: `{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"e":{}},"logging":{},"completions":{},"prompts":{"listChanged":true},` +
			`"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}},"serverInfo":` + info + `,"instructions":"i","_meta":{"a":1}}`,
		lost: also(upTo(r1, "capabilities.completions"), upTo(r2, "serverInfo.title"), upTo(r3, "serverInfo.description serverInfo.icons serverInfo.websiteUrl")),
	},
	{
		method: "tools/list",
		full: `{"tools":[{"name":"n","title":"T","description":"d","icons":` + icons + `,"inputSchema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},` +
			`"outputSchema":{"type":"object","properties":{}},"annotations":{"title":"t","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"_meta":{"a":1}},` +
			`{"name":"any","inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":{}}}],"nextCursor":"c","_meta":{"a":1}}`,
		lost: also(upTo(r1, "tools.0.annotations"), upTo(r2, "tools.0._meta tools.0.outputSchema tools.0.title"), upTo(r3, "tools.0.icons"), upTo(r4, "tools.1.outputSchema")),
	},
	{
		method: "resources/list",
		full:   `{"resources":[{"uri":"x://a","name":"n","title":"T","description":"d","mimeType":"m","size":5,"icons":` + icons + `,"annotations":` + annotations + `,"_meta":{"a":1}}],"nextCursor":""}`,
		lost:   also(upTo(r2, "resources.0._meta resources.0.annotations.lastModified resources.0.title"), upTo(r3, "resources.0.icons")),
	},
	{
		method: "resources/templates/list",
		full:   `{"resourceTemplates":[{"uriTemplate":"file:///{a}","name":"n","title":"T","description":"d","mimeType":"m","icons":` + icons + `,"annotations":` + annotations + `,"_meta":{"a":1}}],"nextCursor":"c"}`,
		lost:   also(upTo(r2, "resourceTemplates.0._meta resourceTemplates.0.annotations.lastModified resourceTemplates.0.title"), upTo(r3, "resourceTemplates.0.icons")),
	},
	{
		method: "resources/read",
		full:   `{"contents":[{"uri":"x://a","mimeType":"m","text":"t","_meta":{"a":1}},{"uri":"x://b","mimeType":"m","blob":"AAAA","_meta":{"a":1}}],"_meta":{"a":1}}`,
		lost:   upTo(r2, "contents.0._meta contents.1._meta"),
	},
	{
		method: "prompts/list",
		full:   `{"prompts":[{"name":"n","title":"T","description":"d","arguments":[{"name":"a","title":"A","description":"d","required":true}],"icons":` + icons + `,"_meta":{"a":1}}],"nextCursor":"c"}`,
		lost:   also(upTo(r2, "prompts.0._meta prompts.0.arguments.0.title prompts.0.title"), upTo(r3, "prompts.0.icons")),
	},
	{
		method: "prompts/get",
		full:   `{"description":"d","messages":[` + messages(contents) + `],"_meta":{"a":1}}`,
		lost: also(upTo(r2, lostContent("messages.%d.content", false)), upTo(r1, "messages.2.content.data messages.2.content.mimeType"),
			upTo(r1, "messages.2.content.annotations"), map[mcp.Revision]string{r2: "messages.2.content.annotations.lastModified"},
			upTo(r2, "messages.5.content.annotations messages.5.content.description messages.5.content.icons messages.5.content.mimeType messages.5.content.name messages.5.content.size messages.5.content.title messages.5.content.uri"),
			map[mcp.Revision]string{r3: "messages.5.content.icons"}),
		changed: also(upTo(r1, "messages.2.content.type"), upTo(r2, "messages.5.content.type")),
	},
	{
		method: "tools/call",
		full:   `{"content":` + contents + `,"structuredContent":{"a":1},"isError":false,"_meta":{"a":1}}`,
		lost: also(upTo(r2, lostContent("content.%d", false)+" structuredContent"), upTo(r1, "content.2.data content.2.mimeType"),
			upTo(r1, "content.2.annotations"), map[mcp.Revision]string{r2: "content.2.annotations.lastModified"},
			upTo(r2, "content.5.annotations content.5.description content.5.icons content.5.mimeType content.5.name content.5.size content.5.title content.5.uri"),
			map[mcp.Revision]string{r3: "content.5.icons"}),
		changed: also(upTo(r1, "content.2.type"), upTo(r2, "content.5.type")),
	},
	{
		method: "completion/complete",
		full:   `{"completion":{"values":["a"],"total":5,"hasMore":true},"_meta":{"a":1}}`,
	},
	{
		method: "sampling/createMessage",
		full: `{"role":"assistant","model":"m","stopReason":"toolUse","_meta":{"a":1},"content":[{"type":"text","text":"t"},` +
			`{"type":"tool_use","id":"1","name":"n","input":{"a":1}}]}`,
		changed: upTo(r3, "content"),
	},
	{
		method:  "roots/list",
		full:    `{"roots":[{"uri":"file:///a","name":"n","_meta":{"a":1}}],"_meta":{"a":1}}`,
		lost:    upTo(r2, "roots.0._meta"),
		changed: nil,
	},
	{
		method: "elicitation/create",
		full:   `{"action":"accept","content":{"a":"s","b":1,"c":true}}`,
	},
}

var params = []adaptation{
	{
		method: "initialize",
		full: `{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"e":{}},"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}}},` +
			`"clientInfo":` + info + `}`,
		lost: also(upTo(r2, "capabilities.elicitation clientInfo.title"), map[mcp.Revision]string{r3: "capabilities.elicitation.form capabilities.elicitation.url"},
			upTo(r3, "capabilities.sampling.context capabilities.sampling.tools clientInfo.description clientInfo.icons clientInfo.websiteUrl")),
	},
	{
		method: "completion/complete",
		full:   `{"ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"c"}}}`,
		lost:   upTo(r2, "context"),
	},
	{
		method: "notifications/progress",
		full:   `{"progressToken":1,"progress":0.5,"total":1.5,"message":"m"}`,
		lost:   upTo(r1, "message"),
	},
	{
		method: "notifications/message",
		full:   `{"level":"info","logger":"l","data":{"a":[1]}}`,
	},
	{
		method: "sampling/createMessage",
		full: `{"messages":[{"role":"user","content":{"type":"audio","data":"AAAA","mimeType":"audio/wav"},"_meta":{"a":1}},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"n","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"t"}],"structuredContent":{"a":1},"isError":true},{"type":"text","text":"u"}]},` +
			`{"role":"assistant","content":{"type":"tool_use","id":"2","name":"n","input":{}}}],` +
			`"modelPreferences":{"hints":[{"name":"h"}],"costPriority":0.1,"speedPriority":0.2,"intelligencePriority":0.3},"systemPrompt":"s","includeContext":"none","temperature":0.7,` +
			`"maxTokens":5,"stopSequences":["x"],"metadata":{"a":1},"tools":[{"name":"n","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}`,
		lost: also(upTo(r3, "messages.0._meta messages.3.content.id messages.3.content.input messages.3.content.name toolChoice tools"),
			upTo(r1, "messages.0.content.data messages.0.content.mimeType")),
		changed: also(upTo(r3, "messages.1.content messages.2.content messages.3.content.type"), upTo(r1, "messages.0.content.type")),
	},
	{
		method: "elicitation/create", // a form with every shape of property
		full: `{"mode":"form","message":"m","requestedSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["z"],"properties":{` +
			`"z":{"type":"string","title":"Z","description":"d","minLength":1,"maxLength":9,"format":"email","default":"a@b.c"},` +
			`"y":{"type":"number","title":"Y","minimum":0,"maximum":9.5,"default":1.5},` +
			`"x":{"type":"integer","default":2},` +
			`"w":{"type":"boolean","default":true},` +
			`"v":{"type":"string","enum":["a","b"],"default":"a"},` +
			`"u":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},` +
			`"t":{"type":"string","title":"T","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"b"},` +
			`"s":{"type":"array","title":"S","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["a"]},` +
			`"r":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}}}}`,
		lost: upTo(r3, "mode requestedSchema.required requestedSchema.properties.z.default requestedSchema.properties.y.default requestedSchema.properties.x.default "+
			"requestedSchema.properties.v.default requestedSchema.properties.t.default requestedSchema.properties.t.oneOf requestedSchema.properties.s requestedSchema.properties.r"),
		changed: upTo(r3, "requestedSchema.properties.z.description"),
	},
	{
		method: "elicitation/create", // nothing to change before 2025-11-25 either, but for the mode
		full:   `{"message":"m","requestedSchema":{"type":"object","properties":{"b":{"type":"string","title":"B"},"a":{"type":"boolean","default":false}}}}`,
	},
}

// messages wraps each block into a prompt message.
func messages(blocks string) string {
	var out []string
	for it := rawjson.Array([]byte(blocks)); it.Next(); {
		out = append(out, `{"role":"user","content":`+string(it.Value)+`}`)
	}
	return strings.Join(out, ",")
}

// adapts holds one adaptation against its table and returns the result.
func adapts(t *testing.T, a adaptation, r mcp.Revision, adapt func(mcp.Revision, string, json.RawMessage) json.RawMessage) json.RawMessage {
	full := []byte(a.full)
	got := adapt(r, a.method, full)
	if string(full) != a.full {
		t.Fatalf("the input was changed to %s", full)
	}
	if err := rawjson.CheckAll(got); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	lost, changed := differences("", decodeAny(t, full), decodeAny(t, got))
	if l := sorted(strings.Join(lost, " ")); l != sorted(a.lost[r]) {
		t.Errorf("lost\n\t%s\nwant\n\t%s", l, sorted(a.lost[r]))
	}
	if c := sorted(strings.Join(changed, " ")); c != sorted(a.changed[r]) {
		t.Errorf("changed\n\t%s\nwant\n\t%s", c, sorted(a.changed[r]))
	}
	if a.lost[r] == "" && a.changed[r] == "" && (len(got) != len(full) || &got[0] != &full[0]) {
		t.Error("nothing has to change, and the bytes are not the same ones")
	}
	return got
}

// exists reports whether the revision has the method at all.
func exists(method string, r mcp.Revision) bool {
	switch method {
	case "initialize":
		return !r.Modern()
	case "elicitation/create":
		return r >= r3
	}
	return true
}

func eachAdaptation(t *testing.T, table []adaptation, test func(t *testing.T, a adaptation, r mcp.Revision)) {
	for i, a := range table {
		for _, r := range every {
			if exists(a.method, r) {
				t.Run(fmt.Sprintf("%d %s %s", i, a.method, r), func(t *testing.T) { test(t, a, r) })
			}
		}
	}
}

func validator(t *testing.T, r mcp.Revision) *wiretest.Validator {
	t.Helper()
	v, err := wiretest.For(string(r))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAdaptResult(t *testing.T) {
	eachAdaptation(t, results, func(t *testing.T, a adaptation, r mcp.Revision) {
		got := adapts(t, a, r, mcpwire.AdaptResult)
		if clientAnswers(a.method) { // modern peers do not send these as results
			if err := validator(t, r).Definition(answers[a.method], got); err != nil {
				t.Errorf("%v\n%s", err, got)
			}
			return
		}
		if r.Modern() {
			got = rawjson.Set(got, "resultType", []byte(`"complete"`))
			if mcpwire.Cacheable(a.method) {
				got = rawjson.Set(rawjson.Set(got, "ttlMs", []byte(`0`)), "cacheScope", []byte(`"private"`))
			}
		}
		if a.method == "initialize" {
			got = rawjson.Set(got, "protocolVersion", []byte(`"`+string(r)+`"`))
		}
		frame := []byte(`{"jsonrpc":"2.0","id":1,"result":` + string(got) + `}`)
		if err := validator(t, r).Response(a.method, frame); err != nil {
			t.Errorf("%v\n%s", err, got)
		}
	})
}

// answers maps what a client answers to the definition of the answer.
var answers = map[string]string{"sampling/createMessage": "CreateMessageResult", "roots/list": "ListRootsResult", "elicitation/create": "ElicitResult"}

func clientAnswers(method string) bool { return answers[method] != "" }

func TestAdaptParams(t *testing.T) {
	eachAdaptation(t, params, func(t *testing.T, a adaptation, r mcp.Revision) {
		got := adapts(t, a, r, mcpwire.AdaptParams)
		from, id := wiretest.Client, `"id":1,`
		switch {
		case strings.HasPrefix(a.method, "notifications/"):
			from, id = wiretest.Server, ""
		case clientAnswers(a.method):
			from = wiretest.Server
		}
		if r.Modern() {
			if from == wiretest.Server && id != "" { // an input request
				from, id = wiretest.Server, ""
				if err := validator(t, r).Definition("InputRequests", []byte(`{"k":{"method":"`+a.method+`","params":`+string(got)+`}}`)); err != nil {
					t.Errorf("%v\n%s", err, got)
				}
				return
			}
			got = rawjson.Set(got, "_meta", []byte(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`))
		}
		frame := []byte(`{"jsonrpc":"2.0",` + id + `"method":"` + a.method + `","params":` + string(got) + `}`)
		if err := validator(t, r).Message(frame, from); err != nil {
			t.Errorf("%v\n%s", err, got)
		}
	})
}

func TestAdaptURLElicitation(t *testing.T) {
	full := `{"mode":"url","message":"m","url":"https://x.test","elicitationId":"e"}`
	frame := []byte(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":` + string(mcpwire.AdaptParams(r4, mcp.MethodElicit, []byte(full))) + `}`)
	if err := validator(t, r4).Message(frame, wiretest.Server); err != nil {
		t.Error(err)
	}
}

// The fields of a form are shown in the order in which they are written.
func TestAdaptKeepsTheOrderOfMembers(t *testing.T) {
	full := []byte(`{"message":"m","requestedSchema":{"type":"object","properties":{"z":{"title":"Z","type":"string","default":"x"},"a":{"type":"array","items":{"type":"string","enum":["q"]},"title":"A"},"m":{"type":"string"}}}}`)
	want := `{"message":"m","requestedSchema":{"type":"object","properties":{"z":{"title":"Z","type":"string","description":"(default: x)"},"a.q":{"type":"boolean","title":"A: q"},"m":{"type":"string"}}}}`
	if got := mcpwire.AdaptParams(r3, mcp.MethodElicit, full); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What a value cannot keep it tells as text.
func TestAdaptTexts(t *testing.T) {
	for _, tt := range []struct {
		r               mcp.Revision
		method, in, out string
	}{
		{r1, "tools/call", `{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}`, `{"content":[{"type":"text","text":"[audio, audio/wav, 3 bytes]"}]}`},
		{r2, "tools/call", `{"content":[{"type":"resource_link","uri":"x://l","name":"l"}]}`, `{"content":[{"type":"text","text":"[link to l: x://l]"}]}`},
		{r2, "tools/call", `{"content":[],"structuredContent":{"a":1}}`, `{"content":[]}`},
		{r4, "tools/call", `{"content":[],"structuredContent":[1]}`, `{"content":[]}`},
		{r4, "tools/call", `{"content":[],"structuredContent":null,"x":1}`, `{"content":[],"x":1}`},
		{r4, "tools/call", `{"structuredContent":5}`, `{}`},
		{r4, "tools/call", `{"content":[{"type":"unheard_of","x":1}],"unknown":[1.0]}`, `{"content":[{"type":"unheard_of","x":1}],"unknown":[1.0]}`},
		{r1, "tools/call", `{"content":[{"type":"unheard_of","title":"t","x":1.0}]}`, `{"content":[{"type":"unheard_of","x":1.0}]}`},
		{r1, "tools/call", `{ "content" : [ { "type" : "text" , "_meta" : {} , "text" : "a" } ] , "n" : 1e2 }`, `{"content" : [{"type" : "text","text" : "a"}],"n" : 1e2}`},
		{r3, "sampling/createMessage", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, `{"content":{"type":"text","text":"a\nb"}}`},
		{r3, "sampling/createMessage", `{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}`, `{"content":{"type":"image","data":"AAAA","mimeType":"image/png"}}`},
		{r3, "sampling/createMessage", `{"content":{"type":"tool_use","id":"1","name":"n","input":{}}}`, `{"content":{"type":"text","text":"[call of n: {}]"}}`},
		{r3, "sampling/createMessage", `{"content":{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"r"}]}}`, `{"content":{"type":"text","text":"[result of 1]"}}`},
		{r4, "tools/list", `{"tools":[{"name":"a","outputSchema":true},{"name":"b","outputSchema":{}},{"name":"c","outputSchema":{"type":["object"]}},{"name":"d","outputSchema":{"type":"object"}}]}`,
			`{"tools":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d","outputSchema":{"type":"object"}}]}`},
		// unexpected values stay
		{r1, "tools/call", `{"content":"x"}`, `{"content":"x"}`}, {r1, "tools/call", `{"content":[1,null,"a"]}`, `{"content":[1,null,"a"]}`}, {r1, "tools/list", `{"tools":{}}`, `{"tools":{}}`},
		{r1, "tools/list", `[]`, `[]`}, {r1, "tools/list", `null`, `null`}, {r1, "unheard/of", `{"title":1}`, `{"title":1}`},
		{r1, "tools/call", `{"content":[{"type":"audio","data":5}]}`, `{"content":[{"type":"audio","data":5}]}`},
	} {
		if got := mcpwire.AdaptResult(tt.r, tt.method, []byte(tt.in)); string(got) != tt.out {
			t.Errorf("%s %s %s\ngot  %s\nwant %s", tt.r, tt.method, tt.in, got, tt.out)
		}
	}
	if got := mcpwire.AdaptParams(r1, mcp.MethodComplete, nil); got != nil {
		t.Errorf("no params become %s", got)
	}
}

func TestAdaptAllocations(t *testing.T) {
	for method, raw := range map[string]string{
		"tools/call":  `{"content":[{"type":"text","text":"t"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}`,
		"tools/list":  `{"tools":[{"name":"a","description":"d","inputSchema":{"type":"object"}}]}`,
		"prompts/get": `{"messages":[{"role":"user","content":{"type":"text","text":"t"}}]}`,
	} {
		for _, r := range every {
			full := []byte(raw)
			if n := testing.AllocsPerRun(50, func() {
				if got := mcpwire.AdaptResult(r, method, full); &got[0] != &full[0] {
					t.Fatal("changed")
				}
			}); n != 0 {
				t.Errorf("%s %s: %v allocations", r, method, n)
			}
		}
	}
}
