package openai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/openai"
	"github.com/dowel-mcp/dowel/mcp"
)

// stream answers with chunks as they are.
func stream(chunks ...string) http.Handler {
	return raw(http.StatusOK, "data: "+strings.Join(append(chunks, "[DONE]"), "\n\ndata: ")+"\n\n")
}

// fragments is a chunk of fragments of calls, and stop the last one.
func fragments(calls string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + calls + `]},"finish_reason":null}]}`
}

func stop(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}],"usage":{"prompt_tokens":7,"completion_tokens":5}}`
}

// askModel returns the reply of a model, and its notices, to a request with the tools get_time,
// list_all, get, get_weather and weather.
func askModel(t *testing.T, o openai.Options) (*agent.Message, []string) {
	t.Helper()
	c := agent.Conversation{Messages: []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("go")}}}}
	for _, name := range []string{"get_time", "list_all", "get", "get_weather", "weather"} {
		c.Tools = append(c.Tools, mcp.Tool{Name: name})
	}
	var message *agent.Message
	var notices []string
	for delta, err := range openai.New(o).Reply(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		if message = delta.Message; delta.Notice != "" {
			notices = append(notices, delta.Notice)
		}
	}
	return message, notices
}

// called is the calls of a message, with the ids that the server has given.
func called(m *agent.Message) string {
	var all []string
	for _, use := range m.Calls() {
		id, _, _ := strings.Cut(use.ID, "call_") // made
		all = append(all, id+use.Name+string(use.Input))
	}
	return strings.Join(all, " ")
}

// Each server cuts calls into fragments in its own way.
func TestFragments(t *testing.T) {
	for _, tt := range []struct{ name, chunks, want string }{
		{"OpenAI, DeepSeek, LM Studio: the arguments come behind the name", `{"index":0,"id":"1","type":"function","function":{"name":"get_weather","arguments":""}}
			{"index":0,"function":{"arguments":"{\""}}
			{"index":0,"function":{"arguments":"a\":1}"}}
			{"index":1,"id":"2","type":"function","function":{"name":"get_weather","arguments":""}}
			{"index":1,"function":{"arguments":"{}"}}`, `1get_weather{"a":1} 2get_weather{}`},
		{"OpenAI: no arguments", `{"index":0,"id":"1","type":"function","function":{"name":"get_time","arguments":""}}
			{"index":1,"id":"2","type":"function","function":{"name":"get_time","arguments":""}}`, `1get_time{} 2get_time{}`},
		{"OpenAI: several fragments of a call in a chunk", `{"index":0,"id":"1","type":"function","function":{"name":"get_weather","arguments":""}},{"index":0,"function":{"arguments":"{\"a\":"}}
			{"index":0,"function":{"arguments":"1}"}}`, `1get_weather{"a":1}`},
		{"llama.cpp: the name comes with the beginning of the arguments", `{"index":0,"id":"1","type":"function","function":{"name":"get_weather","arguments":"{"}}
			{"index":0,"function":{"arguments":"\"a\":1"}}
			{"index":0,"function":{"arguments":"}"}}
			{"index":1,"id":"2","type":"function","function":{"name":"get_time","arguments":"{"}}
			{"index":1,"function":{"arguments":"}"}}`, `1get_weather{"a":1} 2get_time{}`},
		{"llama.cpp before b5500: the name each time, and the id elsewhere", `{"index":0,"function":{"arguments":"{\"","name":"get_weather","id":"1"}}
			{"index":0,"function":{"arguments":"a\":","name":"get_weather","id":"1"}}
			{"index":0,"function":{"arguments":"1}","name":"get_weather","id":"1"}}
			{"index":0,"function":{"arguments":"","name":"get_weather","id":"1"}}
			{"index":1,"function":{"arguments":"{}","name":"get_weather","id":"2"}}`, `get_weather{"a":1} get_weather{}`},
		{"vLLM: no arguments with the name, and empty ones at the end", `{"id":"1","type":"function","index":0,"function":{"name":"get_weather"}}
			{"index":0,"function":{"arguments":"{\"a\": "}}
			{"index":0,"function":{"arguments":"1}"}}
			{"index":0,"function":{"arguments":""}}`, `1get_weather{"a": 1}`},
		{"vLLM with GLM: the end repeats id and name", `{"index":0,"id":"1","type":"function","function":{"name":"get_weather","arguments":"{\"a\":"}}
			{"index":0,"id":"1","type":"function","function":{"name":"get_weather","arguments":"1}"}}
			{"index":0,"id":"1","type":"function","function":{"name":"get_weather","arguments":""}}`, `1get_weather{"a":1}`},
		{"vLLM before 0.8: each call has the index 0", `{"index":0,"id":"1","type":"function","function":{"name":"get_weather","arguments":""}}
			{"index":0,"id":"","type":"function","function":{"name":null,"arguments":"{\"a\":1}"}}
			{"index":0,"id":"2","type":"function","function":{"name":"get_weather","arguments":""}}
			{"index":0,"id":"","type":"function","function":{"name":null,"arguments":"{\"a\":2}"}}`, `1get_weather{"a":1} 2get_weather{"a":2}`},
		{"SGLang: the index 0, and the id each time, mixed", `{"index":0,"id":"0","type":"function","function":{"name":"get_weather","arguments":""}}
			{"index":0,"id":"1","type":"function","function":{"name":"get_weather","arguments":""}}
			{"index":0,"id":"0","type":"function","function":{"name":null,"arguments":"{\"a\":1}"}}
			{"index":0,"id":"1","type":"function","function":{"name":null,"arguments":"{\"a\":2}"}}`, `0get_weather{"a":1} 1get_weather{"a":2}`},
		{"Fireworks: id and name each time, empty at first", `{"index":0,"id":"1","type":"function","function":{"name":"get_time","arguments":""},"name":null}
			{"index":0,"id":"1","type":"function","function":{"name":"get_time","arguments":""},"name":null}
			{"index":0,"id":"1","type":"function","function":{"name":"get_time","arguments":"{}"},"name":null}`, `1get_time{}`},
		{"Ollama: whole calls, with the index 0", `{"id":"1","index":0,"type":"function","function":{"name":"get_weather","arguments":"{\"a\":1}"}}
			{"id":"2","index":0,"type":"function","function":{"name":"get_weather","arguments":"{\"a\":1}"}}
			{"id":"3","index":0,"type":"function","function":{"name":"get_time","arguments":"{}"}}`, `1get_weather{"a":1} 2get_weather{"a":1} 3get_time{}`},
		{"Ollama before 0.4.7: no index", `{"id":"1","type":"function","function":{"name":"get_weather","arguments":"{\"a\":1}"}}
			{"id":"2","type":"function","function":{"name":"get_time","arguments":"{}"}}`, `1get_weather{"a":1} 2get_time{}`},
		{"Gemini: neither index nor id", `{"function":{"arguments":"{\"a\":1}","name":"get_weather"},"id":"","type":"function"}
			{"function":{"arguments":"{\"a\":1}","name":"get_weather"},"id":"","type":"function"},{"function":{"arguments":"{}","name":"get_time"},"id":"","type":"function"}`,
			`get_weather{"a":1} get_weather{"a":1} get_time{}`},
		{"whole calls with one id", `{"id":"1","index":0,"function":{"name":"get_weather","arguments":"{\"a\":1}"}}
			{"id":"1","index":0,"function":{"name":"get_weather","arguments":"{\"a\":2}"}}`, `1get_weather{"a":1} get_weather{"a":2}`},
		{"no ids, the index 0, no arguments", `{"index":0,"function":{"name":"get_time","arguments":""}}
			{"index":0,"function":{"name":"list_all","arguments":""}}`, `get_time{} list_all{}`},
		{"the same function", `{"index":0,"function":{"name":"get_time","arguments":""}}
			{"index":0,"function":{"name":"get_time","arguments":""}}`, `get_time{} get_time{}`},
		{"neither ids nor indices nor arguments", `{"function":{"name":"get_time","arguments":""}}
			{"function":{"name":"list_all","arguments":""}}
			{"function":{"name":"list_all","arguments":""}}`, `get_time{} list_all{} list_all{}`},
		{"no index, and the same function whole before", `{"function":{"name":"get_time","arguments":"{}"}}
			{"function":{"name":"get_time","arguments":""}}`, `get_time{} get_time{}`},
		{"no ids, the name at the end once more", `{"index":0,"function":{"name":"get_weather","arguments":"{\"a\":"}}
			{"index":0,"function":{"name":"get_weather","arguments":"1}"}}
			{"index":0,"function":{"name":"get_weather","arguments":""}}`, `get_weather{"a":1}`},
		{"the id once, and the name each time", `{"index":0,"id":"1","function":{"name":"get_time","arguments":""}}
			{"index":0,"function":{"name":"get_time","arguments":""}}
			{"index":0,"function":{"name":"get_time","arguments":"{}"}}`, `1get_time{}`},
		{"a tool that there is not behind another", `{"index":0,"function":{"name":"get_time","arguments":"{}"}}
			{"index":0,"function":{"name":"made_up","arguments":"{}"}}`, `get_time{} made_up{}`},
		{"a name in pieces", `{"index":0,"id":"1","function":{"name":"get_"}}
			{"index":0,"function":{"name":"weather"}}
			{"index":0,"function":{"arguments":"{}"}}`, `1get_weather{}`},
		{"pieces of a tool that there is not", `{"index":0,"id":"1","function":{"name":"made_"}}
			{"index":0,"function":{"name":"up","arguments":"{}"}}`, `1made_up{}`},
		{"pieces that begin with another tool's", `{"index":0,"function":{"name":"get","arguments":""}}
			{"index":0,"function":{"name":"_we","arguments":""}}
			{"index":0,"function":{"name":"ather","arguments":"{}"}}`, `get_weather{}`},
		{"the id before the name", `{"index":0,"id":"1","function":{"arguments":""}}
			{"index":0,"function":{"name":"get_time","arguments":""}}
			{"index":0,"function":{"arguments":"{}"}}`, `1get_time{}`},
		{"null, null and null", `{"index":0,"id":"1","type":null,"function":{"name":"get_time","arguments":null}}
			{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":null}}`, `1get_time{}`},
		{"nothing", `{"index":0,"function":{"arguments":""}}`, ``},
		{"no name", `{"index":0,"function":{"arguments":"{\"a\":1}"}}`, `unknown{"a":1}`},
	} {
		var chunks []string
		for chunk := range strings.Lines(tt.chunks) {
			chunks = append(chunks, fragments(strings.TrimSpace(chunk)))
		}
		m, _ := askModel(t, serve(t, stream(append(chunks, stop("tool_calls"))...)))
		if got := called(m); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		for _, use := range m.Calls() {
			if use.ID == "" {
				t.Errorf("%s: no id", tt.name)
			}
		}
	}
}

// If a reply reached the limit of its length, the call that was being written is not run, and its
// tokens count.
func TestCut(t *testing.T) {
	header := func(index int) string {
		return fmt.Sprintf(`{"index":%d,"id":"%[1]d","function":{"name":"get_time","arguments":""}}`, index)
	}
	arguments := func(index int, text string) string {
		return fmt.Sprintf(`{"index":%d,"function":{"arguments":%q}}`, index, text)
	}
	text := func(text string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q}}]}`, text)
	}
	for _, tt := range []struct {
		name     string
		inPrompt bool
		chunks   []string
		want     string
	}{
		{"behind a name", false, []string{fragments(header(0))}, ""},
		{"in arguments", false, []string{fragments(header(0)), fragments(arguments(0, `{"a":`))}, ""},
		{"behind a text", false, []string{text("I look."), fragments(header(0))}, "I look."},
		{"behind a call", false, []string{fragments(header(0)), fragments(arguments(0, `{"a":1}`)), fragments(header(1))}, `0get_time{"a":1}`},
		{"in a second call", false, []string{fragments(header(0)), fragments(arguments(0, `{}`)), fragments(header(1)), fragments(arguments(1, `{"a`))}, `0get_time{}`},
		{"in mixed calls", false, []string{fragments(header(0)), fragments(header(1)), fragments(arguments(1, `{}`))}, `1get_time{}`},
		{"in a block of the text", true, []string{text("I look.\n```tool_call\n{\"name\": \"get_time\", \"arg")}, "I look.\n"},
		{"behind a whole call in the text", true, []string{text("```tool_call\n{\"name\": \"get_time\"}\n```\n```tool_call\n{\"name\": \"get")}, "get_time{}"},
	} {
		for _, reason := range []string{"length", "model_length"} {
			o := serve(t, stream(append(tt.chunks, stop(reason))...))
			o.ToolsInPrompt = tt.inPrompt
			m, notices := askModel(t, o)
			if got := m.Text() + called(m); got != tt.want || !m.Cut || m.Usage == nil || m.Usage.Output != 5 {
				t.Errorf("%s: got %q, want %q; %+v", tt.name, got, tt.want, m)
			}
			if len(notices) > 0 { // the message says it
				t.Errorf("%s: %q", tt.name, notices)
			}
		}
	}
}

// A filtered reply is reported each time.
func TestFiltered(t *testing.T) {
	for _, heard := range []bool{true, false} {
		var warnings []string
		o := serve(t, stream(`{"choices":[{"index":0,"delta":{"content":"Well"}}]}`, stop("content_filter")))
		if heard {
			o.Warn = func(text string) { warnings = append(warnings, text) }
		}
		m := openai.New(o)
		for range 2 {
			for delta, err := range m.Reply(t.Context(), agent.Conversation{}) {
				if err != nil {
					t.Fatal(err)
				}
				if delta.Notice != "" {
					warnings = append(warnings, delta.Notice)
				}
			}
		}
		if len(warnings) != 2 || !strings.Contains(warnings[1], "filter") {
			t.Errorf("%q", warnings)
		}
	}
}
