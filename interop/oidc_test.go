package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/resource"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// startProvider starts oidc-provider, a certified authorization server, and returns its issuer.
func startProvider(t *testing.T, nonce bool, documents map[string]json.RawMessage) (issuer string) {
	t.Helper()
	requireFile(t, filepath.Join("oidc", "node_modules"))
	options, err := json.Marshal(map[string]any{"nonce": nonce, "documents": documents})
	if err != nil {
		t.Fatal(err)
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	node := requireFile(t, filepath.Join("oidc", "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node"))
	cmd := exec.Command(node, requireFile(t, filepath.Join("oidc", "provider.mjs")), string(options))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // ends it
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "http://") {
			return lines.Text()
		}
	}
	t.Fatal("oidc-provider did not start")
	return ""
}

// startNotes starts a dowel server that accepts the tokens of an issuer, and returns its URL.
func startNotes(t *testing.T, o resource.Options) string {
	t.Helper()
	s := server.New("notes", "1", nil)
	server.Tool(s, "whoami", "Names the user.", func(ctx context.Context, _ struct{}) (string, error) { return resource.FromContext(ctx).Subject, nil })
	endpoint := streamable.Handler(s, nil)
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = endpoint.Shutdown(ended) // the test has ended
		web.Close()
	})
	o.URL, o.Scopes = web.URL+"/mcp", []string{"notes"}
	guard, err := resource.New(o)
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/", guard.Protect(endpoint))
	return o.URL
}

// followBrowser plays a browser with cookies, and a user who agrees to everything.
func followBrowser(ctx context.Context, r auth.LoginRequest) (url.Values, error) {
	redirect := "http://127.0.0.1:13316/callback"
	if len(r.RedirectURIs) > 0 {
		redirect = r.RedirectURIs[0]
	}
	page, err := r.Start(ctx, redirect)
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		if next.URL.Path == "/callback" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	resp, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil, fmt.Errorf("the login ended with status %d at %s", resp.StatusCode, resp.Request.URL)
	}
	return to.Query(), nil
}

// hiddenInput matches the hidden inputs of a form of oidc-provider.
var hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)

// enterCode plays a user who logs in on another device: enters the code, and confirms it.
func enterCode(ctx context.Context, r auth.LoginRequest) (url.Values, error) {
	var failed error
	err := r.Device(ctx, func(code auth.DeviceCode) { failed = confirmCode(ctx, code) })
	return nil, errors.Join(failed, err)
}

func confirmCode(ctx context.Context, code auth.DeviceCode) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar}
	send := func(method string, form url.Values) (page string, err error) {
		r, err := http.NewRequestWithContext(ctx, method, code.URL, strings.NewReader(form.Encode()))
		if err != nil {
			return "", err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := browser.Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %d: %s", resp.Request.URL, resp.StatusCode, text)
		}
		return string(text), err
	}
	page, err := send(http.MethodGet, nil)
	for _, more := range []string{"", "confirm"} {
		if err != nil {
			return err
		}
		form := url.Values{"user_code": {code.Code}}
		for _, input := range hiddenInput.FindAllStringSubmatch(page, -1) {
			form.Set(input[1], input[2])
		}
		if more != "" {
			form.Set(more, "yes")
		}
		page, err = send(http.MethodPost, form)
	}
	return err
}

// whoAmI dials a server and returns the subject of the token that it got.
func whoAmI(t *testing.T, to string, o auth.Options) (string, error) {
	t.Helper()
	tr, err := auth.NewTransport(to, &o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), to, &client.Options{HTTP: client.HTTP{Client: &http.Client{Transport: tr}}})
	if err != nil {
		return "", err
	}
	defer c.Close()
	return client.Call[string](t.Context(), c, "whoami", nil)
}

// Both sides of dowel work with a real authorization server: with bearer tokens, and with tokens
// that are bound to a key while both servers want nonces.
func TestOIDCProvider(t *testing.T) {
	const document = "https://dowel.example/client.json"
	raw, err := auth.ClientDocument(auth.Client{DocumentURL: document})
	if err != nil {
		t.Fatal(err)
	}
	for _, dpop := range []bool{false, true} {
		t.Run(fmt.Sprint("DPoP ", dpop), func(t *testing.T) {
			t.Parallel()
			issuer := startProvider(t, dpop, map[string]json.RawMessage{document: raw})
			to := startNotes(t, resource.Options{
				Issuers: []resource.Issuer{{URL: issuer}}, OfferDPoP: dpop, RequireDPoP: dpop, DPoPNonces: dpop,
			})
			for name, o := range map[string]auth.Options{
				"registration":       {Login: auth.LoginFunc(followBrowser)},
				"document":           {Login: auth.LoginFunc(followBrowser), Client: auth.Client{DocumentURL: document}},
				"device":             {Login: auth.LoginFunc(enterCode)},
				"device, document":   {Login: auth.LoginFunc(enterCode), Client: auth.Client{DocumentURL: document}},
				"client credentials": {ClientCredentials: true, Client: auth.Client{ID: "robot", Secret: "odd:/+ secret%"}},
			} {
				want := "alice"
				if o.ClientCredentials {
					want = "robot"
				}
				if got, err := whoAmI(t, to, o); err != nil || got != want {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
			refreshTwice(t, to)
		})
	}
}

// refreshTwice checks that an expired token is refreshed, and that the second use of a refresh
// token ends the login.
func refreshTwice(t *testing.T, to string) {
	t.Helper()
	store := auth.NewStore()
	if _, err := whoAmI(t, to, auth.Options{Login: auth.LoginFunc(followBrowser), Store: store}); err != nil {
		t.Fatal(err)
	}
	var first, second string
	expire := func(used *string, next string) {
		err := store.Update(t.Context(), auth.RecordKey(to, ""), func(r *auth.Record) (*auth.Record, error) {
			*used = r.RefreshToken
			r.ExpiresAt = time.Now().Add(-time.Minute)
			if next != "" {
				r.AccessToken, r.RefreshToken = "expired", next
			}
			return r, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	expire(&first, "")
	if got, err := whoAmI(t, to, auth.Options{Store: store}); err != nil || got != "alice" {
		t.Errorf("after a refresh: %q, %v", got, err)
	}
	expire(&second, first)
	var needs *auth.NeedsLogin
	if _, err := whoAmI(t, to, auth.Options{Store: store}); !errors.As(err, &needs) || first == second {
		t.Errorf("with a used refresh token: %v", err)
	}
	if got, err := whoAmI(t, to, auth.Options{Login: auth.LoginFunc(followBrowser), Store: store}); err != nil || got != "alice" {
		t.Errorf("after another login: %q, %v", got, err)
	}
}
