//go:build linux

package attack

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// askBody is a call of a tool that asks, of a client that can answer. The tool's server is legacy.
func askBody(more string) string {
	meta := strings.Replace(modernMeta, `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}`, 1)
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asker__good","arguments":{"message":"who?"}` + more + `,` + meta + `}}`
}

// modernAsker is a tool that asks, of a modern server.
const modernAsker = "every__test_elicitation"

// ask sends askBody with a token and returns the status and the answer.
func (v *victim) ask(path, token, body string) (int, string) {
	fields := v.echoFields()
	fields[1], fields[len(fields)-1] = "Bearer "+token, "asker__good"
	for _, name := range []string{modernAsker, "every__echo"} {
		if strings.Contains(body, `"name":"`+name+`"`) {
			fields[len(fields)-1] = name
		}
	}
	code, text, _ := v.exchange("POST", path, body, fields...)
	return code, text
}

// Attacks 17, 84 and 85: a client answers the question that another client's call asks, answers one
// twice, with a changed state, for another tool, and with forged states. Expected: only the asking
// client's answer counts, and of a legacy server's question only the first.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"asker__good", modernAsker} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			answerForOthers(t, sharedVictimOf(t), tool)
		})
	}
}

func answerForOthers(t *testing.T, v *victim, tool string) {
	askBody := func(more string) string { return strings.Replace(askBody(more), "asker__good", tool, 1) }
	code, text := v.ask("/client/ci/mcp", "token-of-ci", askBody(""))
	if i := strings.Index(text, "{"); i >= 0 {
		text = strings.TrimSpace(text[i:])
	}
	var asked struct {
		Result struct {
			ResultType    string                     `json:"resultType"`
			RequestState  string                     `json:"requestState"`
			InputRequests map[string]json.RawMessage `json:"inputRequests"`
		}
	}
	if err := json.Unmarshal([]byte(text), &asked); err != nil || code != http.StatusOK || asked.Result.RequestState == "" {
		t.Fatalf("%d %s %v", code, text, err)
	}
	key := ""
	for key = range asked.Result.InputRequests {
	}
	answer := func(state string) string {
		quoted, _ := json.Marshal(state)
		return askBody(`,"requestState":` + string(quoted) + `,"inputResponses":{"` + key + `":{"action":"accept","content":{"username":"xyzzy","email":"a@b.cd"}}}`)
	}
	state := asked.Result.RequestState
	for name, attempt := range map[string]struct{ path, token, body string }{
		"another client":     {"/client/other/mcp", "token-of-other", answer(state)},
		"the owner's token":  {"/mcp", v.token, answer(state)},
		"another tool":       {"/client/ci/mcp", "token-of-ci", strings.Replace(answer(state), tool, "every__echo", 1)},
		"other arguments":    {"/client/ci/mcp", "token-of-ci", strings.Replace(answer(state), "who?", "your password?", 1)},
		"a changed state":    {"/client/ci/mcp", "token-of-ci", answer(state[:len(state)-2] + "AA")},
		"half a state":       {"/client/ci/mcp", "token-of-ci", answer(state[:len(state)/2])},
		"no state":           {"/client/ci/mcp", "token-of-ci", answer("")},
		"a state with a NUL": {"/client/ci/mcp", "token-of-ci", answer(state + "\x00")},
	} {
		if _, text := v.ask(attempt.path, attempt.token, attempt.body); strings.Contains(text, "xyzzy") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if _, text := v.ask("/client/ci/mcp", "token-of-ci", answer(state)); !strings.Contains(text, "xyzzy") {
		t.Errorf("the asking client's answer: %s", text)
	}
	if _, text := v.ask("/client/ci/mcp", "token-of-ci", answer(state)); tool != modernAsker && strings.Contains(text, "xyzzy") {
		t.Errorf("the same answer again: %s", text)
	}
}
