package link

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
)

func TestLinks(t *testing.T) {
	t.Parallel()
	const entry = `{"command":"npx","args":["-y","@acme/weather"],"env":{"KEY":"${input:key}"}}`
	encoded := url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(`{"command":"npx","args":["-y","@acme/weather>?"]}`)))
	code := "vscode:mcp/install?" + url.QueryEscape(`{"name":"weather","inputs":[{"id":"key","type":"promptString","password":true}],"command":"npx","args":["-y","@acme/weather"],"env":{"KEY":"${input:key}"}}`)
	for text, want := range map[string]string{
		"cursor://anysphere.cursor-deeplink/mcp/install?name=weather&config=" + encoded:                                `{"command":"npx","args":["-y","@acme/weather>?"]}`,
		"https://cursor.com/en/install-mcp?name=weather&config=" + encoded:                                             `{"command":"npx","args":["-y","@acme/weather>?"]}`,
		"lmstudio://add_mcp?name=weather&config=" + encoded:                                                            `{"command":"npx","args":["-y","@acme/weather>?"]}`,
		"https://kiro.dev/launch/mcp/add?name=weather&config=" + url.QueryEscape(`{"url":"https://acme.example/mcp"}`): `{"url":"https://acme.example/mcp"}`,
		code: `{"command":"npx","args":["-y","@acme/weather"],"env":{"KEY":"${input:key}"}}`,
		strings.Replace(code, "vscode:", "vscode-insiders:", 1):                                                          `{"command":"npx","args":["-y","@acme/weather"],"env":{"KEY":"${input:key}"}}`,
		"https://insiders.vscode.dev/redirect?url=" + url.QueryEscape(code):                                              `{"command":"npx","args":["-y","@acme/weather"],"env":{"KEY":"${input:key}"}}`,
		"https://insiders.vscode.dev/redirect/mcp/install?name=weather&config=" + url.QueryEscape(entry):                 `{"command":"npx","args":["-y","@acme/weather"],"env":{"KEY":"${input:key}"}}`,
		"goose://extension?cmd=npx&arg=-y&arg=%40acme%2Fweather&timeout=300&id=weather&name=weather&env=KEY%3DThe%20key": `{"command":"npx","args":["-y","@acme/weather"],"env":{"KEY":"${env:KEY}"}}`,
	} {
		if !Is(text) {
			t.Errorf("%s is no link", text)
		}
		s, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if s.Name != "weather" || !s.Valid() {
			t.Errorf("%s: %s, %v", text, s.Name, s.Problems)
		}
		out, err := edit.Set([]byte("{}"), edit.JSON, []string{"x"}, transfer.Entry(s, ""))
		got := strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(string(out))
		if err != nil || got != `{"x":`+want+"}" {
			t.Errorf("%s:\n%s, want\n%s", text, got, want)
		}
	}
}

func TestNoLinks(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"io.github.acme/weather", "weather", "https://acme.example/mcp", "https://acme.example/w.mcpb", "./server.json", "C:\\x"} {
		if Is(text) {
			t.Errorf("%s is a link", text)
		}
	}
	for says, text := range map[string]string{
		"neither JSON nor base64": "cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=!!!",
		"no JSON object":          "cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=W10",
		"has no name":             "cursor://anysphere.cursor-deeplink/mcp/install?config=e30",
		"neither cmd nor url":     "goose://extension?name=x",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
