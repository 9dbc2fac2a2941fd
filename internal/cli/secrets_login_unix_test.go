//go:build unix

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/desktop"
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

// startOfIDToken returns the text with which the claims of a client's ID tokens from package
// authtest start, encoded as in the tokens.
func startOfIDToken(clientID string) string {
	claims := `{"aud":"` + clientID + `","exp":1`
	return base64.RawURLEncoding.EncodeToString([]byte(claims[:len(claims)/3*3]))
}

// storedProofKeys returns the private key for DPoP proofs in the login at a server, in the forms in
// which a program may write it, by names.
func (u *testUser) storedProofKeys(server string) map[string]string {
	u.t.Helper()
	store, err := desktop.OpenStore(filepath.Join(u.home, "dowel", "auth"), &desktop.StoreOptions{NoKeyring: true})
	if err != nil {
		u.t.Fatal(err)
	}
	record, err := store.Load(u.t.Context(), auth.RecordKey(server, ""))
	if err != nil || record == nil {
		u.t.Fatalf("the login at %s: %+v, %v", server, record, err)
	}
	var key struct{ D string }
	if err := json.Unmarshal(record.DPoPKey, &key); err != nil || len(key.D) != 43 {
		u.t.Fatalf("the login has no private key for proofs: %v", err)
	}
	number, err := base64.RawURLEncoding.DecodeString(key.D)
	if err != nil {
		u.t.Fatal(err)
	}
	return map[string]string{
		"proof key": key.D, "proof key in base64": base64.StdEncoding.EncodeToString(number), "proof key in hexadecimal": hex.EncodeToString(number),
		"proof key as a number": new(big.Int).SetBytes(number).String(),
	}
}

// No output shows the credentials with which the gateway asks an authorization server about opaque
// tokens, nor these tokens, even if the server repeats them in its refusal.
func TestIntrospectionSecretsInOutputs(t *testing.T) {
	t.Parallel()
	var isRefusing atomic.Bool
	as := authtest.Start(t, &authtest.Options{
		Opaque: true, Clients: []authtest.Client{{ID: "gateway", Secret: "swordfish:of/the gateway"}},
		OnRequest: func(endpoint string, w http.ResponseWriter, r *http.Request) bool {
			if endpoint != "introspect" || !isRefusing.Load() {
				return false
			}
			_, secret, _ := r.BasicAuth()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"%s %s %s"}`, secret, r.Header.Get("Authorization"), r.Form.Get("token"))
			return true
		},
	})
	u := newTestUser(t)
	u.writeFile(u.userFile(), fmt.Sprintf(`{"gateway": {"auth": {"issuers": [%q], "clientId": "gateway", "clientSecret": "swordfish:of/the gateway"}, "audit": %q, "auditArguments": true},
		"mcpServers": {"mine": %s}}`, as.Issuer, filepath.Join(u.home, "audit.jsonl"), u.builtInEntry("everything", "")))
	url := u.startDaemon("--verbose")
	u.awaitStates(map[string]hub.Status{"mine": hub.Ready})
	good, unknown := as.IssueToken(url+"/mcp"), "access-of-another-server"
	var shown strings.Builder
	call := func(token string, want int) {
		resp, text := callTool(t, url+"/mcp", token, "mine__echo", `{"message":"hi"}`)
		fmt.Fprintln(&shown, text, resp.Header)
		if resp.StatusCode != want {
			t.Errorf("status %d with %s, want %d", resp.StatusCode, text, want)
		}
	}
	call(good, http.StatusOK)
	call(unknown, http.StatusUnauthorized)
	isRefusing.Store(true)
	late := as.IssueToken(url + "/mcp")
	call(late, http.StatusServiceUnavailable)
	for _, words := range []string{
		"status", "status --json", "status mine --json", "doctor mine --json --verbose", "config check", "config check --json", "config explain mine --json",
		"servers list --json", "servers logs mine", "wire --past --json", "auth status --json", "call mine__echo message=hi --wire -v --url " + url + "/mcp -H",
	} {
		all := strings.Fields(words)
		if strings.HasSuffix(words, " -H") {
			all = append(all, "Authorization: Bearer "+unknown)
		}
		out := u.runDowel(all...)
		shown.WriteString("\n" + words + "\n" + out.stdout + out.stderr)
	}
	u.stopDaemon()
	audit := u.readText(filepath.Join(u.home, "audit.jsonl"))
	all := shown.String() + u.output() + audit
	if !strings.Contains(audit, as.Issuer+"#") || as.Count("introspect") < 3 {
		t.Errorf("%d tokens were looked up, the audit is %s", as.Count("introspect"), audit)
	}
	secrets := map[string]string{"secret": "swordfish", "token": good, "unknown token": unknown, "token that could not be looked up": late}
	for _, r := range as.Requests("introspect") {
		_, secrets["credentials"], _ = strings.Cut(r.Header.Get("Authorization"), " ")
	}
	for name, secret := range secrets {
		if i := strings.Index(all, secret); i >= 0 || secret == "" {
			t.Errorf("the %s %q is shown: %s", name, secret, all[max(0, i-300):min(len(all), max(0, i)+60)])
		}
	}
}
