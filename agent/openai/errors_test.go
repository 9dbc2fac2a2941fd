package openai_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/openai"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

// typed answers with a content type and a body.
func typed(kind, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		_, _ = io.WriteString(w, body)
	})
}

// An answer of another kind is not taken for a broken connection.
func TestNoChatCompletions(t *testing.T) {
	const chunk = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n"
	for _, tt := range []struct{ kind, body, want string }{
		{"text/html; charset=utf-8", "<!DOCTYPE html>\n<html>\x1b[2J<title>Log in" + strings.Repeat("!", 200),
			"answers with text/html and no stream of chat completions (it begins: <!DOCTYPE html> <html> [2J<title>Log in" + strings.Repeat("!", 41) + "…): check the base URL"},
		{"application/json", "{}", "answers with application/json and no stream of chat completions (it begins: {}): check the base URL"},
		{"application/json", `{"choices":[]}`, `(it begins: {"choices":[]}): check the base URL`},
		{"application/json", `{"choices":[{"text":"hi"}]}`, `(it begins: {"choices":[{"text":"hi"}]}): check the base URL`},
		{"", "garbage", "answers with something other than a stream of chat completions (it begins: garbage): check the base URL"},
		{"text/event-stream", "garbage\n\n", "answers with something other than a stream of chat completions (it begins: garbage): check the base URL"},
		{"text/html", "", "answers with nothing, and no stream of chat completions: check the base URL"},
		{"text/event-stream", "data: garbage\n\n", "sent text other than JSON in its stream (it begins: garbage): try again, and if it fails again, check the base URL"},
		{"text/event-stream", chunk + "data: garbage\n\n", "sent text other than JSON in its stream (it begins: garbage)"},
		{"text/event-stream", "data: {}\n\ndata: [DONE]\n\n", "answers with a stream that holds no chat completions (it begins: data: {} data: [DONE]): check the base URL"},
		{"text/event-stream", "data: {\"choices\":[]}\n\n", "answers with a stream that holds no chat completions"},
		{"application/json", `{"error":{"message":"the context length is exceeded"}}`, agent.ErrContextLength.Error()},
	} {
		for _, retries := range []int{-1, 4} { // it does not help to ask again
			asked := 0
			o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				typed(tt.kind, tt.body).ServeHTTP(w, r)
			}))
			o.Retries = retries
			_, err := ask(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "EOF") || asked != 1 {
				t.Errorf("%s %s: asked %d times, got %v, want %s", tt.kind, tt.body, asked, err, tt.want)
			}
		}
	}
}

func TestAdviceOnBaseURL(t *testing.T) {
	for _, h := range []http.Handler{raw(404, "no"), typed("text/html", "<html>")} {
		o := serve(t, h)
		_, versioned := ask(t.Context(), o)
		o.BaseURL = strings.TrimSuffix(o.BaseURL, "/v1")
		_, bare := ask(t.Context(), o)
		const advice = "check the base URL, which often ends in /v1"
		if bare == nil || !strings.Contains(bare.Error(), advice) || strings.Contains(versioned.Error(), advice) {
			t.Errorf("got %v and %v", bare, versioned)
		}
	}
}

// Servers exist that answer a request for a stream with a whole chat completion.
func TestWholeChatCompletion(t *testing.T) {
	const whole = `{"object":"chat.completion","error":null,"choices":[{"index":0,"finish_reason":%,"message":{"role":"assistant","content":"hi","reasoning_content":"hm",
		"tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{\"n\":1}"}},{"id":"2","type":"function","function":{"name":"a","arguments":"{\"n\":2}"}}]}}],
		"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`
	for _, finish := range []string{`"tool_calls"`, "null"} {
		m, err := ask(t.Context(), serve(t, typed("application/json", strings.Replace(whole, "%", finish, 1))))
		if err != nil {
			t.Fatal(err)
		}
		if m.Text() != "hi" || len(m.Calls()) != 2 || string(m.Calls()[1].Input) != `{"n":2}` || m.Usage.Input != 9 || len(m.Reasoning) == 0 {
			t.Errorf("got %+v", m)
		}
	}
}

// If a provider repeats the key, neither the error's text nor its fields show it.
func TestKeyIsMasked(t *testing.T) {
	const key = "sk-verysecretbad"
	for _, h := range []http.Handler{
		raw(401, `{"error":{"message":"Incorrect API key provided: `+key+`."}}`),
		raw(401, strings.Repeat("x", 290)+" "+key), // where what it says is cut
		raw(200, `data: {"error":{"message":"Incorrect API key provided: `+key+`."}}`+"\n\n"),
		typed("text/html", "<p>who is "+key),
		raw(200, "data: no "+key+"\n\n"),
	} {
		o := serve(t, h)
		o.Key = key
		_, err := ask(t.Context(), o)
		if err == nil || strings.Contains(err.Error(), "sk-very") || !strings.Contains(err.Error(), "****") {
			t.Errorf("got %v", err)
		}
		if api, ok := errors.AsType[*openai.Error](err); ok && strings.Contains(fmt.Sprintf("%+v", *api), "sk-very") {
			t.Errorf("the server's error holds %+v", *api)
		}
	}
}

func TestReplyBreaksOff(t *testing.T) {
	_, silent := ask(t.Context(), serve(t, raw(200, ": still busy\n\n: still busy\n\n")))
	if silent == nil || !strings.Contains(silent.Error(), "has failed; try again: unexpected EOF") {
		t.Error(silent)
	}
	_, err := ask(t.Context(), serve(t, raw(200, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"höchst\"}}]}\n\n")))
	if err == nil || !strings.Contains(err.Error(), "broke off after 6 characters; try again") {
		t.Error(err)
	}
}

// A base URL may include the path of the chat completions.
func TestBaseURLOfChatCompletions(t *testing.T) {
	for _, end := range []string{"/chat/completions", "/chat/completions/", "/chat/completions?a=b"} {
		s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{{Text: "hi"}}}, modelserver.Chat)
		path := ""
		o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.RequestURI()
			s.ServeHTTP(w, r)
		}))
		o.BaseURL += end
		if m, err := ask(t.Context(), o); err != nil || m.Text() != "hi" || path != strings.TrimSuffix("/v1"+end, "/") {
			t.Errorf("%s: %v at %s", end, err, path)
		}
	}
}

// transport answers without a network.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func answer(status int, header http.Header, body string) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

// A busy server is asked again for some seconds, and the user is told once.
func TestBusy(t *testing.T) {
	const fine = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n"
	for _, tt := range []struct {
		name   string
		status int
		header http.Header
		body   string
		fails  int // how often
		asked  int
		least  time.Duration
		notice string
		err    string
	}{
		{"for a while", 503, nil, "", 4, 5, 5 * time.Second, "http://model/v1 is busy (503); trying again", ""},
		{"for long", 502, nil, "<html>", 9, 5, 5 * time.Second, "http://model/v1 has failed (502); trying again", "try again later"},
		{"as long as it says", 429, http.Header{"Retry-After": {"20"}}, "", 1, 2, 20 * time.Second, "http://model/v1 is busy (429); trying again in 20 s", ""},
		{"for too long", 429, http.Header{"Retry-After": {"3600"}}, "", 1, 1, 0, "", "wait a while"},
		{"without money", 429, nil, `{"error":{"code":"insufficient_quota"}}`, 1, 1, 0, "", "top it up"},
		{"for ever", 503, http.Header{"X-Should-Retry": {"false"}}, "", 1, 1, 0, "", "try again later"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				o := openai.Options{Model: "m", BaseURL: "http://model/v1", HTTPClient: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
					if asked++; asked <= tt.fails {
						return answer(tt.status, tt.header.Clone(), tt.body), nil
					}
					return answer(200, nil, fine), nil
				})}}
				began := time.Now()
				notices, err := notices(t, o)
				if asked != tt.asked || time.Since(began) < tt.least || time.Since(began) > tt.least+5*time.Second || strings.Join(notices, "|") != tt.notice {
					t.Errorf("asked %d times in %v, said %q", asked, time.Since(began), notices)
				}
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
			})
		})
	}
}

func notices(t *testing.T, o openai.Options) (all []string, err error) {
	c := agent.Conversation{Messages: []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("go")}}}}
	for delta, failed := range openai.New(o).Reply(t.Context(), c) {
		if delta.Notice != "" {
			all = append(all, delta.Notice)
		}
		err = failed
	}
	return all, err
}

// If the listener leaves at the notice of a retry, the request is not sent again.
func TestLeavesBusy(t *testing.T) {
	for _, failure := range []error{nil, errors.New("reset")} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			o := openai.Options{Model: "m", BaseURL: "http://model/v1", HTTPClient: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				if asked++; failure != nil {
					return nil, failure
				}
				return answer(503, nil, ""), nil
			})}}
			c := agent.Conversation{Messages: []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("go")}}}}
			for delta := range openai.New(o).Reply(t.Context(), c) {
				if !strings.HasSuffix(delta.Notice, "trying again") {
					t.Errorf("got %+v", delta)
				}
				break
			}
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// An absent server is not waited for as long as a busy one.
func TestNobodyThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openai.Options{Model: "m", BaseURL: "http://model/v1", HTTPClient: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		})}}
		began := time.Now()
		said, err := notices(t, o)
		if err == nil || !strings.Contains(err.Error(), "is the server running") || len(said) != 1 || time.Since(began) > 2*time.Second {
			t.Errorf("%q and %v after %v", said, err, time.Since(began))
		}
	})
}
