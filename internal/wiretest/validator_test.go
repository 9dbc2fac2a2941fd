package wiretest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func mustFor(t testing.TB, revision string) *Validator {
	t.Helper()
	v, err := For(revision)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestForUnknownRevision(t *testing.T) {
	if _, err := For("2023-01-01"); err == nil {
		t.Fatal("no error for a revision that does not exist")
	}
}

func TestForIsShared(t *testing.T) {
	if mustFor(t, firstModern) != mustFor(t, firstModern) {
		t.Fatal("a revision is loaded twice")
	}
}

// Every definition of every schema compiles: no reference leads nowhere.
func TestDefinitionsCompile(t *testing.T) {
	for _, revision := range Revisions() {
		v := mustFor(t, revision)
		if len(v.names.all) < 79 {
			t.Errorf("%s: only %d definitions", revision, len(v.names.all))
		}
		for name := range v.names.all {
			if _, err := v.compileSchema(name); err != nil {
				t.Errorf("%s %s: %v", revision, name, err)
			}
		}
	}
}

func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("testdata/" + firstModern + "/examples/*/*.json")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d examples, %v", len(paths), err)
	}
	v := mustFor(t, firstModern)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(path))
		if err := v.Definition(name, text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if strings.HasSuffix(path, "read-resource-result-response.json") {
			// The specification's own slip: a complete result without its caching
			// hints, which fits the schema only as an InputRequiredResult.
			judge(t, path, asMessage(v, name, text), "ttlMs")
			continue
		}
		if err := asMessage(v, name, text); err != nil {
			t.Errorf("%s as a message: %v", path, err)
		}
	}
}

// asMessage puts an example through the method that its definition belongs to.
func asMessage(v *Validator, name string, text []byte) error {
	for role := range v.names.requests {
		for _, methods := range []map[string]string{v.names.requests[role], v.names.notifications[role]} {
			if slices.Contains(valuesOf(methods), name) {
				return v.Message(text, Role(role))
			}
		}
	}
	for method, request := range v.names.requests[Client] {
		if strings.TrimSuffix(request, "Request")+"ResultResponse" == name {
			return v.Response(method, text)
		}
	}
	if strings.HasSuffix(name, "Error") {
		return v.Response("tools/call", text)
	}
	return nil
}

func valuesOf(methods map[string]string) []string {
	var values []string
	for _, value := range methods {
		values = append(values, value)
	}
	return values
}

func TestDerivedNames(t *testing.T) {
	tests := []struct{ revision, method, result string }{
		{"2024-11-05", "initialize", "InitializeResult"},
		{"2024-11-05", "ping", "Result"},
		{"2025-03-26", "tools/call", "CallToolResult"},
		{"2025-06-18", "elicitation/create", "ElicitResult"},
		{"2025-11-25", "tasks/get", "GetTaskResult"},
		{"2025-11-25", "logging/setLevel", "Result"},
		{"2026-07-28", "server/discover", "DiscoverResult"},
		{"2026-07-28", "subscriptions/listen", "SubscriptionsListenResult"},
		{"2026-07-28", "resources/templates/list", "ListResourceTemplatesResult"},
		{"2026-07-28", "ping", "Result"},
	}
	for _, test := range tests {
		if got := mustFor(t, test.revision).names.resultName(test.method); got != test.result {
			t.Errorf("%s %s: %s, want %s", test.revision, test.method, got, test.result)
		}
	}
	errors := map[string]string{}
	for _, revision := range Revisions() {
		for code, name := range mustFor(t, revision).names.errors {
			errors[revision+" "+code] = name
		}
	}
	want := map[string]string{
		"2025-11-25 -32042": "URLElicitationRequiredError",
		"2026-07-28 -32020": "HeaderMismatchError",
		"2026-07-28 -32021": "MissingRequiredClientCapabilityError",
		"2026-07-28 -32022": "UnsupportedProtocolVersionError",
	}
	if fmt.Sprint(errors) != fmt.Sprint(want) {
		t.Errorf("errors by code: %v, want %v", errors, want)
	}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func TestMessage(t *testing.T) {
	const legacy = "2024-11-05 2025-03-26 2025-06-18 2025-11-25"
	const all = legacy + " 2026-07-28"
	tests := []struct {
		name, revisions string
		from            Role
		frame           string
		wrong           string // a part of the error; "" for a good frame
	}{
		{"call", legacy, Client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`, ""},
		{"call with string id", legacy, Client, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a"}}`, ""},
		{"call without name", all, Client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + `}}`, "name"},
		{"call without jsonrpc", all, Client, `{"id":1,"method":"tools/call","params":{"name":"a",` + modernMeta + `}}`, "jsonrpc"},
		{"null id", all, Client, `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"a",` + modernMeta + `}}`, "/id"},
		{"fractional id", all, Client, `{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"a",` + modernMeta + `}}`, "/id"},
		{"call without meta", "2026-07-28", Client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, "_meta"},
		{"modern call", "2026-07-28", Client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",` + modernMeta + `}}`, ""},
		{"call by the server", all, Server, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",` + modernMeta + `}}`, "server"},
		{"call as a notification", all, Client, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}`, "sent without"},
		{"list without params", legacy, Client, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, ""},
		{"list without params", "2026-07-28", Client, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "params"},
		{"ping both ways", legacy, Server, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, ""},
		{"ping of a modern server", "2026-07-28", Server, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "sends no requests"},
		{"sampling", legacy, Server, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`, ""},
		{"sampling", "2026-07-28", Server, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`, "sends no requests"},
		{"sampling by the client", legacy, Client, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`, "not for a client"},
		{"elicitation", "2025-06-18 2025-11-25", Server, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`, ""},
		{"nested elicitation", "2025-06-18 2025-11-25", Server, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}}`, "properties/a"},
		{"unknown request", all, Client, `{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"z":1}}`, ""},
		{"unknown request with array params", all, Client, `{"jsonrpc":"2.0","id":1,"method":"x/y","params":[1]}`, "params"},
		{"unknown notification", all, Server, `{"jsonrpc":"2.0","method":"notifications/x"}`, ""},
		{"progress", all, Server, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.5}}`, ""},
		{"progress of the client", legacy, Client, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.5}}`, ""},
		{"progress of the client", "2026-07-28", Client, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.5}}`, "not for a client"},
		{"progress without token", all, Server, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.5}}`, "progressToken"},
		{"log of no level", all, Server, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud","data":1}}`, "level"},
		{"roots changed", legacy, Client, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, ""},
		{"batch", "2025-03-26", Client, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]`, ""},
		{"batch with a bad item", "2025-03-26", Client, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}]`, "batch item 0"},
		{"batch of both kinds", "2025-03-26", Client, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"result":{}}]`, "JSONRPCMessage"},
		{"empty batch", "2025-03-26", Client, `[]`, "empty"},
		{"batch", "2024-11-05 2025-06-18 2025-11-25 2026-07-28", Client, `[{"jsonrpc":"2.0","id":1,"method":"x"}]`, "no batches"},
		{"not JSON", all, Client, `{"jsonrpc":`, "JSON"},
		{"two values", all, Client, `{} {}`, "continues"},
		{"member twice", all, Client, `{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, "twice"},
		{"bad UTF-8", all, Client, "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"x\"}", "UTF-8"},
		{"nothing", all, Client, `{"jsonrpc":"2.0","id":1}`, "none of"},
		{"result and error", all, Server, `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, "more than one"},
		{"no object", all, Client, `7`, "not an object"},
		{"response", legacy, Server, `{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
		{"response", "2026-07-28", Server, `{"jsonrpc":"2.0","id":1,"result":{}}`, "resultType"},
		{"huge exponent", all, Client, `{"jsonrpc":"2.0","id":1e99999999,"method":"x"}`, "beyond reason"},
		{"large number", legacy, Client, `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":-1.5E+999}}`, ""},
		{"too deep", all, Client, strings.Repeat("[", 2000), "deep"},
	}
	for _, test := range tests {
		for revision := range strings.FieldsSeq(test.revisions) {
			err := mustFor(t, revision).Message([]byte(test.frame), test.from)
			judge(t, test.name+" "+revision, err, test.wrong)
		}
	}
}

func judge(t *testing.T, name string, err error, wrong string) {
	t.Helper()
	switch {
	case wrong == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case wrong != "" && err == nil:
		t.Errorf("%s: no error, want one about %q", name, wrong)
	case wrong != "" && !strings.Contains(err.Error(), wrong):
		t.Errorf("%s: %v, want one about %q", name, err, wrong)
	}
}

func TestResponse(t *testing.T) {
	const older = "2024-11-05 2025-03-26 2025-06-18"
	const legacy = older + " 2025-11-25"
	const all = legacy + " 2026-07-28"
	tests := []struct{ name, revisions, method, frame, wrong string }{
		{"call", legacy, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}]}}`, ""},
		{"call without resultType", "2026-07-28", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, "resultType"},
		{"modern call", "2026-07-28", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}`, ""},
		{"call without content", all, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`, "content"},
		{"bad base64", all, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"image","mimeType":"image/png","data":"!"}]}}`, "content/0"},
		{"audio before its time", "2024-11-05", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","mimeType":"audio/wav","data":"AAAA"}]}}`, "content/0"},
		{"audio", "2025-03-26 2025-06-18 2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","mimeType":"audio/wav","data":"AAAA"}]}}`, ""},
		{"array as structured content", "2025-06-18 2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":[1]}}`, "structuredContent"},
		{"array as structured content", "2026-07-28", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"structuredContent":[1]}}`, ""},
		{"asking", "2026-07-28", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}`, ""},
		{"asking for what cannot be asked", "2026-07-28", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"tools/list"}}}}`, "inputRequests/k"},
		{"of an extension", "2026-07-28", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"task"}}`, ""},
		{"task", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"","lastUpdatedAt":"","ttl":null}}}`, ""},
		{"task of a list", "2025-11-25", "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"task":{}}}`, "tools"},
		{"list", legacy, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}`, ""},
		{"tool without schema", all, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"a"}]}}`, "inputSchema"},
		{"negative ttl", "2026-07-28", "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":-1,"cacheScope":"public","tools":[]}}`, "ttlMs"},
		{"resource with a relative uri", all, "resources/list", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"public","resources":[{"name":"a","uri":"a"}]}}`, "uri"},
		{"101 completions", "2026-07-28", "completion/complete", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","completion":{"values":[` + strings.Repeat(`"a",`, 100) + `"a"]}}}`, "values"},
		{"fractional answer", "2025-06-18 2025-11-25", "elicitation/create", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":1.5}}}`, ""},
		{"nested answer", "2025-06-18 2025-11-25", "elicitation/create", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":{}}}}`, "content/n"},
		{"null in an experimental capability", "2026-07-28", "server/discover", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"public","supportedVersions":[],"capabilities":{"experimental":{"x":{"a":null,"b":0.5}}}}}`, ""},
		{"unknown method", legacy, "x/y", `{"jsonrpc":"2.0","id":1,"result":{"z":1}}`, ""},
		{"result that is not an object", all, "x/y", `{"jsonrpc":"2.0","id":1,"result":[]}`, "result"},
		{"error", all, "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}`, ""},
		{"error without message", all, "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602}}`, "message"},
		{"error with a fractional code", all, "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}`, "code"},
		{"error without id", all, "tools/call", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}`, ""},
		{"error with null id", all, "tools/call", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, "id"},
		{"URL elicitation required", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"e"}]}}}`, ""},
		{"URL elicitation required without any", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m"}}`, "data"},
		{"missing capability as a list", "2026-07-28", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":["elicitation"]}}}`, "requiredCapabilities"},
		{"unsupported version without list", "2026-07-28", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m","data":{"requested":"x"}}}`, "supported"},
		{"request", all, "tools/call", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "not a response"},
	}
	for _, test := range tests {
		for revision := range strings.FieldsSeq(test.revisions) {
			err := mustFor(t, revision).Response(test.method, []byte(test.frame))
			judge(t, test.name+" "+revision, err, test.wrong)
		}
	}
}
