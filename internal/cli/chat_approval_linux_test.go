package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// asks returns the questions of the user's running dowel.
func (u *testUser) asks() (list control.AskList) {
	u.t.Helper()
	resp, err := u.control().HTTP().Get("http://localhost/v1/asks")
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		u.t.Fatal(err)
	}
	return list
}

// control returns a client of the user's running dowel.
func (u *testUser) control() *control.Client {
	return control.NewClient(control.Path(u.home, filepath.Join(u.home, "dowel")))
}

// awaitAsk waits until one question is open.
func (u *testUser) awaitAsk() control.Ask {
	u.t.Helper()
	var one control.Ask
	polltest.Until(u.t, "an open question", func() bool {
		list := u.asks()
		if len(list.Asks) == 1 {
			one = list.Asks[0]
		}
		return len(list.Asks) == 1
	})
	return one
}

// answerAsk answers a question as the console does.
func (u *testUser) answerAsk(id uint64, answer string) {
	u.t.Helper()
	resp, err := u.control().HTTP().Post(fmt.Sprintf("http://localhost/v1/asks/%d", id), "application/json", strings.NewReader(answer))
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		u.t.Errorf("%s: %s", answer, resp.Status)
	}
}

// An approval can be given in the terminal and in the console of the running dowel: the first
// answer counts, and both sides see where it was given. When the dowel ends, the terminal continues
// alone.
func TestChatSharedApproval(t *testing.T) {
	u := newTestUser(t)
	u.startDaemon()
	add := `{"calls": [{"name": "cli-test__add", "arguments": {"a": 1, "b": 2}}]}`
	m := newModel(t, `{"turns": [`+add+`, {"expect": ["3"], "calls": [{"name": "cli-test__name"}]}, {"expect": ["not now"], "text": "one"}, `+
		strings.Replace(add, "add", "echo", 1)+`, {"text": "two"}, `+strings.Replace(add, "add", "name", 1)+`, {"text": "three"}]}`)
	p := startOnTerminal(t, u.newCommand(withTestServer(t, "chat", "--plain", "--model", "gpt-test", "--base-url", m.url)...), 80, 24)
	p.expect(prompt)
	p.expect("cli-test (17 tools)")
	p.typeText("go\r")

	p.expect("Run cli-test.add?")
	ask := u.awaitAsk()
	if a := ask.Approval; ask.Kind != "approval" || ask.Client != "dowel chat" || a == nil || a.Tool != "cli-test.add" || a.Session == "" || !strings.Contains(a.Arguments, `"b":`) {
		t.Errorf("%+v", ask)
	}
	u.answerAsk(ask.ID, `{"action":"accept","scope":"tool"}`)
	p.expect("allowed in the console, for the session")

	p.expect("Run cli-test.name?")
	u.answerAsk(u.awaitAsk().ID, `{"action":"decline","reason":"not now"}`)
	p.expect("refused in the console: not now")
	p.expect("one\r\n")

	p.typeText("again\r")
	p.expect("Run cli-test.echo?")
	u.awaitAsk()
	p.typeText("n later\r")
	p.expect("two\r\n")
	list := u.asks()
	if len(list.Asks) != 0 || len(list.Closed) != 3 || list.Closed[0].Outcome != "decline" || list.Closed[0].By != "client" || list.Closed[1].By != "console" {
		t.Errorf("%+v", list)
	}

	p.typeText("and again\r")
	p.expect("Run cli-test.name?")
	u.awaitAsk()
	u.stopDaemon()
	p.typeText("n never\r")
	p.expect("three\r\n")
	p.endChat()
	u.expectSuccess("allowed by user in the console", "chat", "--trace")
}
