package anthropic_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/anthropic"
	"github.com/dowel-mcp/dowel/internal/modelserver"
)

// answering returns the options of a model with a server that gives one answer.
func answering(t *testing.T, status int, kind, body string) anthropic.Options {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(web.Close)
	return anthropic.Options{Model: "claude-m", BaseURL: web.URL, HTTPClient: web.Client()}
}

// An answer of another kind is not taken for a broken connection, and not requested again.
func TestNoMessages(t *testing.T) {
	for _, tt := range []struct{ kind, body, want string }{
		{"text/html", "<html>\n<title>Log in", "HOST answers with text/html and no stream of Anthropic messages (it begins: <html> <title>Log in): check the base URL"},
		{"application/json", "{}", "HOST answers with application/json and no stream of Anthropic messages (it begins: {}): check the base URL"},
		{"application/json", `{"choices":[{"message":{}}]}`, "answers with application/json and no stream of Anthropic messages"},
		{"", "garbage", "answers with something other than a stream of Anthropic messages (it begins: garbage): check the base URL"},
		{"text/event-stream", "", "answers with nothing, and no stream of Anthropic messages: check the base URL"},
		{"text/event-stream", "data: garbage\n\n", "answers with a stream that holds no Anthropic messages (it begins: data: garbage): check the base URL"},
		{"text/event-stream", "event: message_start\ndata: garbage\n\n", "sent text other than JSON in its stream (it begins: garbage): try again"},
		{"text/event-stream", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", "answers with a stream that holds no Anthropic messages"},
		{"application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "is overloaded; try again later (it says: Overloaded): overloaded_error"},
	} {
		o, asked := answering(t, 200, tt.kind, tt.body), 0
		client := o.HTTPClient.Transport
		o.HTTPClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			return client.RoundTrip(r)
		})}
		err := failure(anthropic.New(o))
		if want := strings.Replace(tt.want, "HOST", o.BaseURL, 1); err == nil || !strings.Contains(err.Error(), want) || asked != 1 {
			t.Errorf("%s %s: asked %d times, got %v, want %s", tt.kind, tt.body, asked, err, want)
		}
	}
}

// Servers exist that answer a request for a stream with a whole message.
func TestWholeMessage(t *testing.T) {
	o := answering(t, 200, "application/json", `{"type":"message","role":"assistant","error":null,"model":"m","id":"1","stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":2},
		"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hi"},{"type":"tool_use","id":"c","name":"a","input":{"n":1}}]}`)
	thought, said := "", ""
	var m *agent.Message
	for delta, err := range anthropic.New(o).Reply(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		thought, said, m = thought+delta.Reasoning, said+delta.Text, delta.Message
	}
	if thought != "hm" || said != "hi" || m.Text() != "hi" || len(m.Calls()) != 1 || string(m.Calls()[0].Input) != `{"n":1}` ||
		*m.Usage != (agent.Usage{Input: 9, Output: 2}) || !strings.Contains(string(m.Reasoning), `"signature":"s"`) {
		t.Errorf("thought %q, said %q, got %+v", thought, said, m)
	}
}

// If a provider repeats the key, neither the error's text nor its fields show it.
func TestKeyIsMasked(t *testing.T) {
	const key = "sk-ant-verysecretkey-WXYZ"
	for _, o := range []anthropic.Options{
		answering(t, 401, "", `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key `+key+`"}}`),
		answering(t, 401, "", strings.Repeat("x", 290)+" "+key),
		answering(t, 200, "", "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"no "+key+"\"}}\n\n"),
		answering(t, 200, "", "<p>who is "+key),
	} {
		o.Key, o.Retries = key, -1
		err := failure(anthropic.New(o))
		if err == nil || strings.Contains(err.Error(), "verysecret") || !strings.Contains(err.Error(), "****") {
			t.Errorf("got %v", err)
		}
		if api, ok := errors.AsType[*anthropic.Error](err); ok && strings.Contains(fmt.Sprintf("%+v", *api), "verysecret") {
			t.Errorf("the server's error holds %+v", *api)
		}
	}
}

// Errors of imitating servers name the server and its message.
func TestOtherErrors(t *testing.T) {
	for _, tt := range []struct {
		status     int
		body, want string
	}{
		{404, `{"error":{"type":"not_found_error","message":"model: claude-m"}}`, "HOST has no model claude-m: check the name (it says: model: claude-m): 404 not_found_error"},
		{404, "not found", "there is no Messages API at HOST: check the base URL (it says: not found): 404 Not Found"},
		{404, `{"detail":"Not Found"}`, "(it says: Not Found): 404 Not Found"},
		{401, `{"error":"who are you?"}`, "HOST wants an API key, and none is set (it says: who are you?): 401 Unauthorized"},
		{500, "<html>\n<p>much", "HOST has failed; try again later (it says: <html>): 500 Internal Server Error"},
		{400, "", "HOST does not accept the request: 400 Bad Request"},
	} {
		o := answering(t, tt.status, "", tt.body)
		o.Retries = -1
		err := failure(anthropic.New(o))
		if want := strings.Replace(tt.want, "HOST", o.BaseURL, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d %s: got %v, want %s", tt.status, tt.body, err, want)
		}
	}
}

// A base URL may include the path of the messages.
func TestBaseURLOfMessages(t *testing.T) {
	for _, end := range []string{"", "/", "/v1", "/v1/messages", "/v1/messages/"} {
		server, o := serve(t, modelserver.Turn{Text: "hi"})
		o.BaseURL += end
		if err := failure(anthropic.New(o)); err != nil || len(server.Requests()) != 1 {
			t.Errorf("%s: %v", end, err)
		}
	}
}

// roundTrip answers without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (t roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A busy server is asked again for some seconds, and the user is told once.
func TestBusy(t *testing.T) {
	for _, tt := range []struct {
		name, after string
		fails       int // how often
		asked       int
		least       time.Duration
		notice      string
	}{
		{"for a while", "", 4, 5, 5 * time.Second, "https://api.anthropic.com is busy (529); trying again"},
		{"for long", "", 9, 5, 5 * time.Second, "https://api.anthropic.com is busy (529); trying again"},
		{"as long as it says", "20", 1, 2, 20 * time.Second, "https://api.anthropic.com is busy (529); trying again in 20 s"},
		{"for too long", "3600", 1, 1, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				o := anthropic.Options{Model: "m", HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					status, body := 200, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
					if asked++; asked <= tt.fails {
						status, body = 529, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`
					}
					return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {tt.after}}, Body: io.NopCloser(strings.NewReader(body))}, nil
				})}}
				began, notices := time.Now(), []string(nil)
				var err error
				for delta, failed := range anthropic.New(o).Reply(t.Context(), hello()) {
					if delta.Notice != "" {
						notices = append(notices, delta.Notice)
					}
					err = failed
				}
				took := time.Since(began)
				if asked != tt.asked || took < tt.least || took > tt.least+5*time.Second || strings.Join(notices, "|") != tt.notice || (err != nil) != (tt.fails >= tt.asked) {
					t.Errorf("asked %d times in %v, said %q: %v", asked, took, notices, err)
				}
			})
		})
	}
}
