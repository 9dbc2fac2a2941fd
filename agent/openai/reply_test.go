package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/openai"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

func serve(t *testing.T, s http.Handler) openai.Options {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return openai.Options{Model: "m", BaseURL: web.URL + "/v1", HTTPClient: web.Client(), Retries: -1}
}

func ask(ctx context.Context, o openai.Options, messages ...agent.Message) (last *agent.Message, err error) {
	if messages == nil {
		messages = []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("go")}}}
	}
	for delta, failed := range openai.New(o).Reply(ctx, agent.Conversation{Messages: messages}) {
		last, err = delta.Message, failed
	}
	return last, err
}

// A server may leave out ids, number all calls 0, or give two calls one id.
func TestCallsGetIDs(t *testing.T) {
	turn := modelserver.Turn{Calls: []modelserver.Call{
		{ID: "same", Name: "a", Arguments: json.RawMessage(`{"n":1}`)}, {ID: "same", Name: "a", Arguments: json.RawMessage(`{"n":2}`)}, {ID: "other", Name: "b"},
	}}
	for _, quirks := range [][]string{nil, {"noIDs"}, {"noIDs", "wholeCalls"}, {"noIDs", "interleaved"}} {
		m, err := ask(t.Context(), serve(t, modelserver.New(t.Error, modelserver.Script{Quirks: quirks, Turns: []modelserver.Turn{turn}}, modelserver.Chat)))
		if err != nil {
			t.Fatal(quirks, err)
		}
		seen, got := map[string]bool{}, ""
		for _, use := range m.Calls() {
			if use.ID == "" || seen[use.ID] {
				t.Errorf("%v: the id of %s is %q", quirks, use.Name, use.ID)
			}
			seen[use.ID] = true
			got += use.Name + string(use.Input)
		}
		if got != `a{"n":1}a{"n":2}b{}` {
			t.Errorf("%v: calls are %s", quirks, got)
		}
	}
}

func TestWholeCallsWithIDs(t *testing.T) {
	turn := modelserver.Turn{Calls: []modelserver.Call{{Name: "a"}, {Name: "a"}}}
	m, err := ask(t.Context(), serve(t, modelserver.New(t.Error, modelserver.Script{Quirks: []string{"wholeCalls"}, Turns: []modelserver.Turn{turn}}, modelserver.Chat)))
	if err != nil || len(m.Calls()) != 2 || m.Calls()[1].ID != "call_0_1" {
		t.Errorf("got %+v, %v", m, err)
	}
}

// raw answers with a body as it is.
func raw(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func TestOddServers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   []string
	}{
		{"an error that is a string", 404, `{"error":"model 'm' not found"}`, []string{"has no model m", "model 'm' not found"}},
		{"a code that is a number", 400, `{"error":{"code":400,"message":"maximum context length"}}`, []string{agent.ErrContextLength.Error()}},
		{"the message at the top", 400, `{"object":"error","message":"bad thing","code":40000}`, []string{"bad thing"}},
		{"a detail", 404, `{"detail":"Not Found"}`, []string{"no chat completions", "Not Found"}},
		{"a page", 502, "<html>\n<body>Bad Gateway", []string{"try again later", "<html>"}},
		{"nothing", 500, "", []string{"try again later"}},
		{"a list", 429, `[{"error":{"message":"Resource has been exhausted","code":429}}]`, []string{"wait a while", "(it says: Resource has been exhausted)"}},
		{"too many in a minute", 429, `{"message":"Too many tokens, please wait before trying again."}`, []string{"wait a while"}},
		{"a quota of a minute", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 12s.","code":429,"status":"RESOURCE_EXHAUSTED"}}`, []string{"wait a while"}},
		{"Azure's limit", 429, `{"error":{"code":"429","message":"Requests have exceeded token rate limit of your current OpenAI S0 pricing tier. Please go here: https://aka.ms/oai/quotaincrease"}}`, []string{"wait a while"}},
		{"more than in a minute", 429, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 37313. Your maximum context length","type":"tokens","code":"rate_limit_exceeded"}}`, []string{"larger than all that", "shorten"}},
		{"no money", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, []string{"top it up"}},
		{"no money, by its type", 403, `{"error":{"message":"Your account is not active","type":"exceeded_current_quota_error"}}`, []string{"top it up"}},
		{"too many in a stream", 200, "data: {\"error\":{\"message\":\"Rate limit: too many tokens\",\"code\":429}}\n\n", []string{"wait a while"}},
		{"too long in a stream", 200, "data: {\"error\":{\"message\":\"the context length is exceeded\",\"code\":400}}\n\n", []string{agent.ErrContextLength.Error()}},
		{"a stream without an end", 200, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n", []string{"broke off"}},
		{"something else", 200, "hello", []string{"answers with text/plain", "hello"}},
	} {
		_, err := ask(t.Context(), serve(t, raw(tt.status, tt.body)))
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, agent.ErrContextLength) != (want == agent.ErrContextLength.Error()) {
				t.Errorf("%s: got %v, want %q", tt.name, err, want)
			}
		}
	}
}

func TestUsageOfDeepSeek(t *testing.T) {
	m, err := ask(t.Context(), serve(t, raw(200, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}],"+
		"\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11,\"prompt_cache_hit_tokens\":4}}\n\ndata: [DONE]\n\n")))
	if err != nil || *m.Usage != (agent.Usage{Input: 9, Cached: 4, Output: 2}) {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestErrors(t *testing.T) {
	if _, err := ask(t.Context(), openai.Options{}); err == nil || !strings.Contains(err.Error(), "no model is named") {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = ask(t.Context(), openai.Options{Model: "m", BaseURL: "http://" + l.Addr().String() + "/v1", Retries: -1})
	if err == nil || !strings.Contains(err.Error(), "is the server running") {
		t.Error(err)
	}
}

// Errors and messages do not show the secrets of the base URL.
func TestSecretsOfBaseURL(t *testing.T) {
	secretly := func(o openai.Options) openai.Options {
		o.BaseURL = strings.Replace(o.BaseURL, "://", "://me:hush@", 1) + "?key=hush-hush"
		return o
	}
	gone := serve(t, raw(200, ""))
	gone.BaseURL = "http://127.0.0.1:1/v1"
	for want, o := range map[string]openai.Options{
		"does not accept the API key":  serve(t, raw(401, `{"error": {"message": "no"}}`)),
		"broke off":                    serve(t, raw(200, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n")),
		"there are no chat":            serve(t, raw(404, "nothing here")),
		"nothing answers at http://**": gone,
	} {
		o = secretly(o)
		o.Key = "k"
		_, err := ask(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "****@127.0.0.1") {
			t.Errorf("%s: got %v", want, err)
		}
	}
	m, err := ask(t.Context(), secretly(serve(t, raw(200, "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\",\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))))
	if err != nil || len(m.Reasoning) == 0 || strings.Contains(string(m.Reasoning), "hush") {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestCancel(t *testing.T) {
	gone := errors.New("the user has gone")
	o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	said, last := "", error(nil)
	messages := []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("go")}}}
	for delta, err := range openai.New(o).Reply(ctx, agent.Conversation{Messages: messages}) {
		said += delta.Text
		last = err
		cancel(gone)
	}
	if said != "hi" || !errors.Is(last, gone) {
		t.Errorf("said %q, and the error is %v", said, last)
	}
}

// Thoughts of another provider's model are not sent.
func TestThoughtsOfOthers(t *testing.T) {
	for _, thoughts := range []string{`[{"type":"thinking","thinking":"secret"}]`, `{"from":"https://example.com/v1","reasoning_content":"secret"}`} {
		s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{{Text: "hi"}}}, modelserver.Chat)
		o := serve(t, s)
		o.Reasoning = "always"
		said := func(role mcp.Role) agent.Message {
			return agent.Message{Role: role, Content: []mcp.Content{mcp.Text("a")}, Reasoning: json.RawMessage(thoughts)}
		}
		if _, err := ask(t.Context(), o, said(mcp.RoleUser), said(mcp.RoleAssistant), said(mcp.RoleUser)); err != nil {
			t.Fatal(err)
		}
		if body := s.Requests()[0].Body; strings.Contains(string(body), "secret") {
			t.Errorf("sent %s", body)
		}
	}
}

func TestToolTwice(t *testing.T) {
	s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{{Text: "hi"}, {Text: "hi"}}}, modelserver.Chat)
	o := serve(t, s)
	var warnings []string
	o.Warn = func(text string) { warnings = append(warnings, text) }
	m := openai.New(o)
	c := agent.Conversation{Tools: []mcp.Tool{{Name: "a"}, {Name: "a"}}, Messages: []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("go")}}}}
	for range 2 { // a warning comes once
		for _, err := range m.Reply(t.Context(), c) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(warnings) != 1 || warnings[0] != "there are two tools a: the second is left out" {
		t.Errorf("warnings are %q", warnings)
	}
}
