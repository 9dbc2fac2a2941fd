package modelserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/modelserver"
)

// chatCase is a file of testdata/chat: refused requests with their errors, and accepted ones.
type chatCase struct {
	Script   modelserver.Script `json:"script"`
	Requests []struct {
		Name   string          `json:"name"`
		Key    string          `json:"key"`
		Body   json.RawMessage `json:"body"`
		Status int             `json:"status"`
		Says   string          `json:"says"`
	} `json:"requests"`
}

func post(t *testing.T, s http.Handler, key string, body []byte) (int, string) {
	t.Helper()
	r := httptest.NewRequest("POST", "/v1/chat/completions", bytes.NewReader(body))
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	answer, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(answer)
}

func TestChatRules(t *testing.T) {
	files, err := filepath.Glob("testdata/chat/*.json")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var c chatCase
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &c)
		}
		if err != nil {
			t.Fatal(file, err)
		}
		for _, req := range c.Requests {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+req.Name, func(t *testing.T) {
				script := c.Script
				script.Turns = []modelserver.Turn{{Text: "Good."}}
				s := modelserver.New(t.Error, script, modelserver.Chat)
				status, answer := post(t, s, req.Key, req.Body)
				if status != req.Status || !strings.Contains(answer, req.Says) {
					t.Errorf("got %d %s, want %d with %q", status, answer, req.Status, req.Says)
				}
				if record := s.Requests()[0]; (record.Refused == "") != (status == 200) || (record.Turn == 0) != (status == 200) {
					t.Errorf("the record is %+v", record)
				}
			})
		}
	}
}

const hello = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}]}`

func TestChatStream(t *testing.T) {
	turn := modelserver.Turn{
		Reasoning: "hm", Text: "Grüße aus Köln", Usage: &modelserver.Usage{Input: 10, Cached: 4, Output: 3},
		Calls: []modelserver.Call{{Name: "a", Arguments: json.RawMessage(`{"x":1}`)}, {Name: "b", Arguments: json.RawMessage(`"not {json"`)}},
	}
	for _, tt := range []struct {
		quirk string
		want  []string
		no    string
	}{
		{"", []string{`"reasoning_content":"h"`, `"content":"Grü"`, `"id":"call_0_0"`, `"id":"call_0_1"`, `"prompt_tokens":10`, `"cached_tokens":4`, `"finish_reason":"tool_calls"`, "data: [DONE]\n\n"}, `"reasoning":`},
		{"reasoning", []string{`"reasoning":"h"`}, "reasoning_content"},
		{"noIDs", []string{`"name":"a"`}, "call_0"},
		{"signed", []string{`"name":"a","arguments":""},"extra_content":{"google":{"thought_signature":"a is signed"}}`}, "b is signed"},
		{"wholeCalls", []string{`"arguments":"{\"x\":1}"`, `"arguments":"not {json"`}, `"index":1`},
		{"interleaved", []string{`"name":"a","arguments":""}}]},"finish_reason":null,"index":0}],"created":1,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}` + "\n\n" + `data: {"choices":[{"delta":{"tool_calls":[{"index":1`}, "nothing"},
	} {
		s := modelserver.New(t.Error, modelserver.Script{Quirks: []string{tt.quirk}, Turns: []modelserver.Turn{turn}}, modelserver.Chat)
		status, answer := post(t, s, "", []byte(hello))
		for _, want := range tt.want {
			if status != 200 || !strings.Contains(answer, want) {
				t.Errorf("%q: %d without %s:\n%s", tt.quirk, status, want, answer)
			}
		}
		if strings.Contains(answer, tt.no) {
			t.Errorf("%q: with %s:\n%s", tt.quirk, tt.no, answer)
		}
	}
}

func TestChatWhole(t *testing.T) {
	s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{{Text: "Hi", Calls: []modelserver.Call{{ID: "c", Name: "a"}}}}}, modelserver.Chat)
	_, answer := post(t, s, "", []byte(strings.Replace(hello, `"stream":true`, `"stream":false`, 1)))
	want := `{"choices":[{"finish_reason":"tool_calls","index":0,"message":{"content":"Hi","role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"a","arguments":"{}"}}]}}],"created":1,"id":"chatcmpl-1","model":"m","object":"chat.completion","usage":null}`
	if strings.TrimSpace(answer) != want {
		t.Errorf("got %s", answer)
	}
}

func TestFailuresAndCuts(t *testing.T) {
	s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{
		{Fail: &modelserver.Failure{Status: 429, Code: "rate_limit_exceeded", Message: "slow down", RetryAfter: "1"}},
		{Text: "one two three", Cut: true},
		{Text: "one", Fail: &modelserver.Failure{Message: "out of memory", Streamed: true}},
	}}, modelserver.Chat)
	web := httptest.NewServer(s)
	defer web.Close()
	send := func() (*http.Response, string, error) {
		res, err := web.Client().Post(web.URL+"/v1/chat/completions", "application/json", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return res, string(body), err
	}
	if res, body, _ := send(); res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" || !strings.Contains(body, `"code":"rate_limit_exceeded"`) {
		t.Error(res.StatusCode, body)
	}
	if _, body, err := send(); err == nil || !strings.Contains(body, "one") || strings.Contains(body, "three") {
		t.Errorf("got %s, %v", body, err)
	}
	if _, body, err := send(); err != nil || !strings.Contains(body, "out of memory") || strings.Contains(body, "DONE") {
		t.Errorf("got %s, %v", body, err)
	}
	if s.Left() != 0 {
		t.Errorf("%d turns are left", s.Left())
	}
}

func TestReports(t *testing.T) {
	var reports []string
	report := func(args ...any) { reports = append(reports, fmt.Sprint(args...)) }
	s := modelserver.New(report, modelserver.Script{Turns: []modelserver.Turn{{Expect: []string{"goodbye"}}}}, modelserver.Chat)
	for range 2 {
		if status, _ := post(t, s, "", []byte(hello)); status != 400 {
			t.Error(status)
		}
	}
	if len(reports) != 2 || !strings.Contains(reports[0], `expects "goodbye"`) || !strings.Contains(reports[1], "another request") {
		t.Errorf("reports are %q", reports)
	}
}

func TestParse(t *testing.T) {
	if _, err := modelserver.Parse([]byte(`{"turns":[{"txt":"slip"}]}`)); err == nil {
		t.Error("a field that there is not was taken")
	}
}

// Captured text is inserted into later texts and arguments.
func TestTake(t *testing.T) {
	script, err := modelserver.Parse([]byte(`{"turns": [
		{"take": {"shell": "handle ([a-z0-9]+)"}, "text": "It is {{shell}}.", "calls": [{"name": "run", "arguments": {"shell": "{{shell}}"}}]},
		{"take": {"shell": "handle ([a-z0-9]+)"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var reported []string
	s := modelserver.New(func(args ...any) { reported = append(reported, fmt.Sprint(args...)) }, script, modelserver.Chat)
	ask := func(text string) (int, string) {
		return post(t, s, "", []byte(`{"model": "m", "messages": [{"role": "user", "content": "`+text+`"}]}`))
	}
	if code, answer := ask("the handle ab12"); code != http.StatusOK || !strings.Contains(answer, "It is ab12.") || !strings.Contains(answer, `{\"shell\":\"ab12\"}`) {
		t.Errorf("%d %s", code, answer)
	}
	if code, _ := ask("nothing"); code == http.StatusOK || len(reported) != 1 || !strings.Contains(reported[0], "looks for") {
		t.Errorf("%d, reported: %v", code, reported)
	}
}
