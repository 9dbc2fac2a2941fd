package authtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

const (
	redirectURI = "http://127.0.0.1:4321/callback"
	verifier    = "0123456789012345678901234567890123456789012"
)

// testFlow is a client of a server under test.
type testFlow struct {
	*testing.T
	s            *Server
	id, secret   string
	resource     string
	scope        string
	params       url.Values // added to the request for authorization
	tokenHeaders http.Header
}

func newFlow(t *testing.T, o *Options) *testFlow {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	o.Clients = append(o.Clients, Client{ID: "fixed"}, Client{ID: "secret", Secret: "a:b c", Method: "client_secret_basic"})
	return &testFlow{T: t, s: Start(t, o), id: "fixed", resource: "https://mcp.example/mcp"}
}

// send sends a request and returns its status and body, which is nil unless it is a JSON object.
func (f *testFlow) send(method, target string, form url.Values, header http.Header) (int, map[string]any) {
	f.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(f.Context(), method, target, body)
	if err != nil {
		f.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		f.Fatal(err)
	}
	var answer map[string]any
	_ = json.Unmarshal(text, &answer)
	return response.StatusCode, answer
}

// post sends a form to an endpoint.
func (f *testFlow) post(endpoint string, form url.Values) (int, map[string]any) {
	f.Helper()
	header := f.tokenHeaders.Clone()
	if header == nil {
		header = http.Header{}
	}
	if f.secret != "" {
		user := url.QueryEscape(f.id) + ":" + url.QueryEscape(f.secret)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user)))
	} else if !form.Has("client_id") {
		form.Set("client_id", f.id)
	}
	return f.send(http.MethodPost, f.s.URL+f.s.options.Path+endpoint, form, header)
}

// register registers a public client and uses it from now on.
func (f *testFlow) register(name string) (int, map[string]any) {
	f.Helper()
	request, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{redirectURI}, "token_endpoint_auth_method": "none"})
	if err != nil {
		f.Fatal(err)
	}
	response, err := http.Post(f.s.URL+f.s.options.Path+"/register", "application/json", strings.NewReader(string(request)))
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var answer map[string]any
	_ = json.NewDecoder(response.Body).Decode(&answer)
	if id, ok := answer["client_id"].(string); ok {
		f.id = id
	}
	return response.StatusCode, answer
}

func (f *testFlow) authorizationURL() string {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {f.id}, "redirect_uri": {redirectURI}, "state": {"s1"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	if f.resource != "" {
		q.Set("resource", f.resource)
	}
	if f.scope != "" {
		q.Set("scope", f.scope)
	}
	for name, values := range f.params {
		q[name] = values
	}
	return f.s.URL + f.s.options.Path + "/authorize?" + q.Encode()
}

// authorize returns the parameters of the redirect.
func (f *testFlow) authorize() url.Values {
	f.Helper()
	redirected, err := f.s.Approve(f.Context(), f.authorizationURL())
	if err != nil {
		return url.Values{"page": {err.Error()}}
	}
	return redirected.Query()
}

// login returns the answer of the token endpoint to a code.
func (f *testFlow) login() map[string]any {
	f.Helper()
	_, answer := f.exchange(f.authorize().Get("code"))
	return answer
}

func (f *testFlow) exchange(code string) (int, map[string]any) {
	f.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirectURI}, "code_verifier": {verifier}}
	if f.resource != "" {
		form.Set("resource", f.resource)
	}
	return f.post("/token", form)
}

func (f *testFlow) refreshWith(token any) (int, map[string]any) {
	f.Helper()
	text, _ := token.(string)
	return f.post("/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text}})
}

// isActive reports what introspection says about a token.
func (f *testFlow) isActive(token any) bool {
	f.Helper()
	text, _ := token.(string)
	resourceServer := &testFlow{T: f.T, s: f.s, id: "secret", secret: "a:b c"}
	status, answer := resourceServer.post("/introspect", url.Values{"token": {text}})
	if status != http.StatusOK {
		f.Fatalf("introspection answered %d %v", status, answer)
	}
	return answer["active"] == true
}

func TestLoginWithRegistration(t *testing.T) {
	t.Parallel()
	f := newFlow(t, &Options{Path: "/tenant1", Scopes: []string{"read"}})
	f.scope = "read"
	if status, answer := f.register("Tests"); status != http.StatusCreated {
		t.Fatal(status, answer)
	}
	q := f.authorize()
	if q.Get("state") != "s1" || q.Get("iss") != f.s.Issuer {
		t.Errorf("redirected with %v", q)
	}
	status, answer := f.exchange(q.Get("code"))
	if status != http.StatusOK || answer["scope"] != "read" || answer["token_type"] != "Bearer" || answer["expires_in"] != 3600.0 {
		t.Fatalf("token endpoint answered %d %v", status, answer)
	}
	claims := verifyToken(t, f, answer["access_token"].(string))
	if claims["aud"] != f.resource || claims["iss"] != f.s.Issuer || claims["sub"] != "alice" || claims["client_id"] != f.id {
		t.Errorf("the claims are %v", claims)
	}
	if !f.isActive(answer["access_token"]) {
		t.Error("the token is not active")
	}
	f.s.Advance(61 * time.Minute)
	if f.isActive(answer["access_token"]) {
		t.Error("the token is active after its life")
	}
	if f.s.Count("register") != 1 || f.s.Count("token") != 1 || f.s.Count("authorization_code") != 1 || f.s.Count("introspect") != 2 {
		t.Error("the counters are wrong")
	}
}

// verifyToken checks a token's signature with the key of the JWKS, and returns its claims.
func verifyToken(t *testing.T, f *testFlow, token string) (claims map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	var header map[string]string
	decodePart(t, parts[0], &header)
	_, set := f.send(http.MethodGet, f.s.URL+f.s.options.Path+"/jwks", nil, nil)
	key := set["keys"].([]any)[0].(map[string]any)
	if header["alg"] != "ES256" || header["typ"] != "at+jwt" || header["kid"] != key["kid"] {
		t.Errorf("the header is %v", header)
	}
	decode := func(text any) []byte {
		b, err := base64.RawURLEncoding.DecodeString(text.(string))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, append(decode(key["x"]), decode(key["y"])...)...))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature := decode(parts[2])
	if !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the signature is wrong")
	}
	decodePart(t, parts[1], &claims)
	return claims
}

func decodePart(t *testing.T, text string, value any) {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, value)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestReusedRefreshTokenRevokesItsFamily(t *testing.T) {
	t.Parallel()
	f := newFlow(t, nil)
	first := f.login()
	status, second := f.refreshWith(first["refresh_token"])
	if status != http.StatusOK || second["refresh_token"] == first["refresh_token"] || second["refresh_token"] == nil {
		t.Fatalf("the refresh answered %d %v", status, second)
	}
	if status, answer := f.refreshWith(first["refresh_token"]); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("the second use answered %d %v", status, answer)
	}
	if status, _ := f.refreshWith(second["refresh_token"]); status != http.StatusBadRequest {
		t.Errorf("the new token answered %d after its family was revoked", status)
	}
	if f.isActive(first["access_token"]) || f.isActive(second["access_token"]) {
		t.Error("an access token of the family is active")
	}
	if other := f.login(); !f.isActive(other["access_token"]) {
		t.Error("a new login is not active")
	}
}

func TestRevokeEndsFamily(t *testing.T) {
	t.Parallel()
	f := newFlow(t, nil)
	answer := f.login()
	if status, _ := f.post("/revoke", url.Values{"token": {answer["refresh_token"].(string)}}); status != http.StatusOK {
		t.Fatal(status)
	}
	if status, _ := f.refreshWith(answer["refresh_token"]); status == http.StatusOK || f.isActive(answer["access_token"]) {
		t.Error("the tokens are valid after they were revoked")
	}
}

func TestCodeIsBoundAndUsedOnce(t *testing.T) {
	t.Parallel()
	f := newFlow(t, nil)
	for name, change := range map[string]url.Values{
		"verifier":     {"code_verifier": {strings.Repeat("x", 43)}},
		"redirect_uri": {"redirect_uri": {"http://127.0.0.1:1/callback"}},
		"resource":     {"resource": {"https://other.example/"}},
		"client":       {"client_id": {"secret"}},
	} {
		form := url.Values{"grant_type": {"authorization_code"}, "code": {f.authorize().Get("code")}, "redirect_uri": {redirectURI}, "code_verifier": {verifier}}
		for k, v := range change {
			form[k] = v
		}
		if status, _ := f.post("/token", form); status == http.StatusOK {
			t.Errorf("a token in spite of another %s", name)
		}
	}
	code := f.authorize().Get("code")
	_, answer := f.exchange(code)
	if status, _ := f.exchange(code); status == http.StatusOK {
		t.Error("the code was accepted twice")
	}
	if f.isActive(answer["access_token"]) {
		t.Error("the token of a stolen code is active")
	}
	code = f.authorize().Get("code")
	f.s.Advance(2 * time.Minute)
	if status, _ := f.exchange(code); status == http.StatusOK {
		t.Error("an expired code was accepted")
	}
}

func TestClientDocument(t *testing.T) {
	t.Parallel()
	f := newFlow(t, nil)
	f.id = "https://client.example/dowel.json"
	if q := f.authorize(); !strings.Contains(q.Get("page"), "unknown client_id") {
		t.Errorf("an unpublished document gave %v", q)
	}
	f.s.PublishDocument(f.id, map[string]any{"client_id": f.id, "redirect_uris": []string{"http://127.0.0.1/callback"}})
	if answer := f.login(); answer["access_token"] == nil {
		t.Errorf("a published document gave %v", answer)
	}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	f := newFlow(t, nil)
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {f.resource}, "scope": {"read"}}
	if status, _ := f.post("/token", form); status == http.StatusOK {
		t.Error("a public client got a token")
	}
	f.id, f.secret = "secret", "a:b c"
	form.Del("client_id")
	if status, answer := f.post("/token", form); status != http.StatusOK || answer["refresh_token"] != nil || !f.isActive(answer["access_token"]) {
		t.Errorf("client credentials answered %d %v", status, answer)
	}
	f.secret = "wrong"
	if status, answer := f.post("/token", form); status != http.StatusUnauthorized || answer["error"] != "invalid_client" {
		t.Errorf("a wrong secret answered %d %v", status, answer)
	}
}

func TestDeviceFlow(t *testing.T) {
	t.Parallel()
	f := newFlow(t, nil)
	_, started := f.post("/device", url.Values{"scope": {"read"}, "resource": {f.resource}})
	poll := func() map[string]any {
		_, answer := f.post("/token", url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {started["device_code"].(string)}})
		return answer
	}
	if answer := poll(); answer["error"] != "authorization_pending" {
		t.Errorf("before the user: %v", answer)
	}
	if answer := poll(); answer["error"] != "slow_down" {
		t.Errorf("without a wait: %v", answer)
	}
	f.send(http.MethodGet, started["verification_uri_complete"].(string), nil, nil)
	f.s.Advance(10 * time.Second)
	if answer := poll(); answer["access_token"] == nil || answer["refresh_token"] == nil {
		t.Errorf("after the user: %v", answer)
	}
}

func TestProtectedResource(t *testing.T) {
	t.Parallel()
	f := newFlow(t, nil)
	p := f.s.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), "read")
	get := func(token string) int {
		status, _ := f.send(http.MethodGet, p.URL, nil, http.Header{"Authorization": {"Bearer " + token}})
		return status
	}
	if status := get("nothing"); status != http.StatusUnauthorized {
		t.Errorf("an unknown token: %d", status)
	}
	if status := get(f.s.IssueToken("https://other.example/", "read")); status != http.StatusUnauthorized {
		t.Errorf("a token for another resource: %d", status)
	}
	if status := get(f.s.IssueToken(p.URL)); status != http.StatusForbidden {
		t.Errorf("a token without the scope: %d", status)
	}
	if status := get(f.s.IssueToken(p.URL, "read")); status != http.StatusTeapot {
		t.Errorf("a good token: %d", status)
	}
	if n := len(p.Headers()); n != 4 {
		t.Errorf("%d requests were recorded, want 4", n)
	}
}
