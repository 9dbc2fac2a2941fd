//go:build unix

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// No output shows a secret of a server's login without a user: the secret or the private key of the
// client, or a token, even if the authorization server repeats the secret in its refusal.
func TestMachineSecretsInOutputs(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	keyText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	pasted, err := json.Marshal(string(keyText))
	if err != nil {
		t.Fatal(err)
	}
	as := authtest.Start(t, &authtest.Options{
		Clients: []authtest.Client{{ID: "bot", Secret: "swordfish-right"}},
		OnRequest: func(endpoint string, w http.ResponseWriter, r *http.Request) bool {
			_, secret, _ := r.BasicAuth()
			assertion := r.Form.Get("client_assertion")
			if endpoint != "client_credentials" || secret == "swordfish-right" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"not the secret of the client: %s%s"}`, secret, assertion)
			return true
		},
	})
	resource := protectEverything(t, as)
	entry := func(login string) string {
		return `{"url": "` + resource.URL + `", "oauth": {"grant": "client_credentials", "issuer": "` + as.Issuer + `", ` + login + `}}`
	}
	u := newTestUser(t)
	u.writeFile(u.userFile(), `{"gateway": {"audit": "`+filepath.Join(u.home, "audit.jsonl")+`", "auditArguments": true}, "mcpServers": {
		"works": `+entry(`"clientId": "bot", "clientSecret": "swordfish-right"`)+`,
		"wrong": `+entry(`"account": "w", "clientId": "bot2", "clientSecret": "swordfish-wrong"`)+`,
		"signs": `+entry(`"account": "s", "clientId": "bot3", "privateKey": "bot.pem"`)+`,
		"paste": `+entry(`"account": "p", "clientId": "bot3", "privateKey": `+string(pasted))+`}}`)
	u.writeFile(filepath.Join(filepath.Dir(u.userFile()), "bot.pem"), string(keyText))
	url := u.startDaemon("--verbose")
	states := u.awaitStates(map[string]hub.Status{"works": hub.Ready, "wrong": hub.Failed, "signs": hub.Failed, "paste": hub.NeedsConfiguration})
	shown := fmt.Sprintf("%+v", states)
	for _, words := range []string{
		"status", "status --json", "status wrong", "status signs --json", "doctor works --json --verbose", "doctor wrong --verbose", "doctor signs --json",
		"call works.echo message=hi --wire", "tools wrong --wire --verbose", "servers logs wrong", "servers logs signs --json", "config explain works",
		"config explain wrong --json", "config explain signs --json", "status paste", "doctor paste --json", "config explain paste --json", "config check", "auth status --json", "servers list --json", "wire --past --json",
	} {
		out := u.runDowel(strings.Fields(words)...)
		shown += "\n" + words + "\n" + out.stdout + out.stderr
	}
	code, page := u.request(http.MethodGet, url+"/status.json", u.tokenHeader())
	if code != http.StatusOK || !strings.Contains(page, "wrong") {
		t.Errorf("the page: %d %s", code, page)
	}
	u.stopDaemon()
	shown += page + u.output() + u.readText(filepath.Join(u.home, "audit.jsonl"))
	secrets := map[string]string{"secret": "swordfish-", "key": base64.StdEncoding.EncodeToString(der)[:40]}
	for i, header := range resource.Headers() {
		if _, token, _ := strings.Cut(header.Get("Authorization"), " "); token != "" {
			secrets[fmt.Sprint("token ", i)] = token
		}
	}
	for i, r := range as.Requests("client_credentials") {
		if assertion := r.Form.Get("client_assertion"); assertion != "" {
			secrets[fmt.Sprint("assertion ", i)] = assertion[:60]
		}
	}
	if len(secrets) < 4 {
		t.Errorf("only %d secrets were used", len(secrets))
	}
	for name, secret := range secrets {
		if i := strings.Index(shown, secret); i >= 0 {
			t.Errorf("the %s is shown: %s", name, shown[max(0, i-300):min(len(shown), i+60)])
		}
	}
}
