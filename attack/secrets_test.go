//go:build linux

package attack

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// Attack 83: a server repeats the credentials that it got in its errors, results and stderr, also
// in other encodings, to have them shown or recorded. Expected: no output of dowel and no record
// shows them as they were sent.
func TestRepeatedCredentials(t *testing.T) {
	t.Parallel()
	const secret = "swordfish+1/2=="
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		sent := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("X-Sent", sent)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "bad token %s, in JSON %q, in a URL https://x/?token=%s", sent, sent, url.QueryEscape(sent))
	}))
	defer web.Close()
	v := newVictim(t)
	v.write(v.userFile(), fmt.Sprintf(`{"gateway": {"audit": %q}, "mcpServers": {"every": %s,
		"echoes": {"url": %q, "headers": {"Authorization": "Bearer %s"}},
		"shouts": {"command": "sh", "args": ["-c", "echo \"my key is $API_KEY\" >&2; exit 1"], "env": {"API_KEY": %q}}}}`,
		filepath.Join(v.home, "audit"), builtIn("everything"), web.URL+"/mcp", secret, secret))
	v.start("--verbose")
	var seen strings.Builder
	for _, words := range []string{"status", "status --json", "status echoes", "status shouts", "servers logs shouts", "servers logs echoes --json", "doctor echoes", "doctor shouts --json",
		"call echoes.x", "call echoes.x --wire", "call shouts.x --json", "config explain echoes", "servers list --json", "tools echoes --wire --verbose"} {
		_, output := v.run(strings.Fields(words)...)
		seen.WriteString("\n=== " + words + "\n" + output)
	}
	_, page, _ := v.exchange("GET", "/status.json", "", "Authorization", v.bearer())
	v.stop()
	seen.WriteString(page + v.output())
	text := seen.String()
	for _, form := range []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte("Bearer " + secret))} {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%q is shown: %s", form, text[max(0, i-300):min(len(text), i+100)])
		}
	}
}

// Attack 94: a server writes terminal sequences to stderr, which status, logs
// and diagnoses show. Expected: no output contains them.
func TestSequencesInOutputs(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.write(v.userFile(), `{"mcpServers": {"every": `+builtIn("everything")+`, "talks": {"command": "sh", "args": ["-c", "printf '\\033]0;owned\\007\\033[2J' >&2; exit 1"]}}}`)
	v.start()
	for _, words := range [][]string{{"status"}, {"status", "talks"}, {"servers", "logs", "talks"}, {"doctor", "talks"}, {"status", "--json"}} {
		_, output := v.run(words...)
		for _, one := range []string{"\u001b", "\u0007", "\u009b"} {
			if strings.Contains(output, one) {
				t.Errorf("dowel %q shows %q: %q", words, one, output)
			}
		}
	}
}
