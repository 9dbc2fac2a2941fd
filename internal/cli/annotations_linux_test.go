package cli

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// TestTrustAnnotations checks that a server's own word does not run its tool, and the ways to
// believe a server: one answer in the chat, dowel trust and a flag. A project's file cannot do so.
func TestTrustAnnotations(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	call := func(server string) string {
		return `{"calls": [{"name": "` + server + `__list"}]}, {"expect": ["keys"], "text": "seen"}`
	}
	m := startModel(t, `{"turns": [`+strings.Join([]string{
		`{"calls": [{"name": "keys__list"}]}`, // is refused
		call("keys"),                          // the chat
		call("keys"),                          // the chat again, without a question
		call("keys"),                          // the answer is kept
		`{"calls": [{"name": "keys__list"}]}`, // is revoked
		call("keys"),                          // dowel trust
		`{"calls": [{"name": "theirs__list"}]}`,
		call("theirs"), // the flag
	}, ",")+`]}`)
	entry := `{"command": "` + testBinary(t) + `", "args": ["serve", "kv", "memory=true"]`
	p.writeFile(p.userFile(), `{"mcpServers": {"keys": `+entry+`}},
		"models": {"scripted": {"provider": "openai", "model": "gpt-test", "url": "`+m.url+`"}}, "model": "scripted"}`)
	p.writeFile(p.projectFile(), `{"mcpServers": {"theirs": `+entry+`, "trustAnnotations": true}}}`)
	p.expectSuccess("allowed", "trust", "theirs", "--yes")
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"keys": hub.Ready, "theirs": hub.Ready})

	runTask := func(code int, want string, words ...string) {
		t.Helper()
		out := p.runDowel(append([]string{"run", "Look."}, words...)...)
		if out.code != code || !strings.Contains(out.stdout+out.stderr, want) {
			t.Errorf("%+v, want exit code %d and %q", out, code, want)
		}
	}
	runTask(exit.Approval, "allow these for good with dowel trust --annotations keys")

	chat := startOnTerminal(t, p.newCommand("chat", "--plain", "--no-save"), 100, 24)
	chat.expect(prompt)
	chat.typeText("look\r")
	chat.expect("If you believe this one, answer r")
	chat.expect("Run keys.list? [y/r/s/server/a/e/n/?]")
	chat.typeText("r\r")
	chat.expect("seen\r\n")
	chat.expect(prompt)
	chat.typeText("again\r")
	chat.expect("seen\r\n")
	chat.endChat()

	runTask(exit.OK, "seen")
	p.expectSuccess("keys: a model calls the tools that it calls read-only without an approval", "trust", "--list")
	p.expectSuccess("need an approval again", "trust", "--annotations", "--revoke", "keys")
	runTask(exit.Approval, "only its server says that it is read-only")
	p.expectSuccess("no longer need an approval", "trust", "--annotations", "keys")
	runTask(exit.OK, "seen")

	runTask(exit.Approval, "for this run with --trust-annotations")
	runTask(exit.OK, "seen", "--trust-annotations")
	for words, want := range map[string]string{
		"trust --annotations":                 "name the servers",
		"trust --annotations nope":            "no server of your configuration is called nope",
		"trust --annotations theirs":          "theirs came with a project",
		"trust --annotations --revoke theirs": "the annotations of theirs are not trusted",
	} {
		if out := p.runDowel(strings.Fields(words)...); out.code != exit.Usage || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v, want %q", words, out, want)
		}
	}
}
