package desktop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// testLogin is a login in progress.
type testLogin struct {
	t      *testing.T
	pages  chan Page
	result chan loginResult
	client *http.Client
}

type loginResult struct {
	values url.Values
	err    error
}

// startLogin begins a login whose authorization URL has a state, and returns it with its redirect
// URI once it waits.
func startLogin(t *testing.T, l *Login, r auth.LoginRequest, state string) (*testLogin, string) {
	t.Helper()
	c, uri, err := tryLogin(t, l, r, state)
	if err != nil {
		t.Fatal(err)
	}
	return c, uri
}

// tryLogin is startLogin for a login that may fail before it shows a page.
func tryLogin(t *testing.T, l *Login, r auth.LoginRequest, state string) (*testLogin, string, error) {
	c := &testLogin{t: t, pages: make(chan Page, 1), result: make(chan loginResult, 1)}
	c.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	l.Show, l.OpenBrowser = func(p Page) { c.pages <- p }, NoBrowser
	uris := make(chan string, 1)
	r.Server = server
	r.Start = func(_ context.Context, redirectURI string) (string, error) {
		uris <- redirectURI
		return "https://as.example/authorize?state=" + url.QueryEscape(state), nil
	}
	go func() {
		values, err := l.Login(t.Context(), r)
		c.result <- loginResult{values, err}
	}()
	select {
	case <-c.pages:
	case result := <-c.result: // a pasted line may have ended the login already
		if len(c.pages) == 0 {
			return nil, "", result.err
		}
		c.result <- result
	}
	return c, <-uris, nil
}

// send sends a request to the listener, and returns the status, the header and the page.
func (c *testLogin) send(method, target string, change func(*http.Request)) (int, http.Header, string) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, target, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	response, err := c.client.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// wait returns the result of the login.
func (c *testLogin) wait() loginResult {
	c.t.Helper()
	return <-c.result
}

// checkWaiting fails the test if the login has ended.
func (c *testLogin) checkWaiting(after string) {
	c.t.Helper()
	select {
	case result := <-c.result:
		c.t.Fatalf("%s ended the login: %v, %v", after, result.values, result.err)
	default:
	}
}

func TestRedirectCompletesLogin(t *testing.T) {
	t.Parallel()
	state := rand.Text()
	c, uri := startLogin(t, &Login{}, auth.LoginRequest{}, state)
	if !strings.HasPrefix(uri, "http://127.0.0.1:") || !strings.HasSuffix(uri, "/callback") {
		t.Errorf("the redirect URI is %s", uri)
	}
	status, header, page := c.send(http.MethodGet, uri+"?code=canary&state="+state+"&iss=https%3A%2F%2Fas.example", nil)
	if status != http.StatusOK || strings.Contains(page, "canary") {
		t.Errorf("the page is %d %s", status, page)
	}
	for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"} {
		if header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, header.Get(name), want)
		}
	}
	if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %s", policy)
	}
	result := c.wait()
	if result.err != nil || result.values.Get("code") != "canary" || result.values.Get("iss") != "https://as.example" {
		t.Errorf("the login returned %v, %v", result.values, result.err)
	}
}

// Each of these requests gets an error and does not end the login.
func TestAttacksOnListener(t *testing.T) {
	t.Parallel()
	state := rand.Text()
	c, uri := startLogin(t, &Login{}, auth.LoginRequest{}, state)
	good := uri + "?code=evil&state=" + state
	for _, tt := range []struct {
		name   string
		method string
		url    string
		change func(*http.Request)
	}{
		{"unknown state", "GET", uri + "?code=evil&state=ffffffffffffffffffffffffffffffff", nil},
		{"empty state", "GET", uri + "?code=evil&state=", nil},
		{"no state", "GET", uri + "?code=evil", nil},
		{"prefix of the state", "GET", uri + "?code=evil&state=" + state[:len(state)-1], nil},
		{"repeated state", "GET", good + "&state=" + state, nil},
		{"repeated code", "GET", good + "&code=other", nil},
		{"neither code nor error", "GET", uri + "?state=" + state, nil},
		{"malformed query", "GET", good + "&x=%zz", nil},
		{"another path", "GET", strings.Replace(good, "/callback", "/callback/x", 1), nil},
		{"no query", "GET", uri, nil},
		{"icon", "GET", strings.Replace(uri, "/callback", "/favicon.ico", 1), nil},
		{"HEAD", "HEAD", good, nil},
		{"POST", "POST", good, nil},
		{"OPTIONS", "OPTIONS", good, nil},
		{"prefetch", "GET", good, func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch;prerender") }},
		{"old prefetch", "GET", good, func(r *http.Request) { r.Header.Set("X-Moz", "prefetch") }},
		{"foreign host", "GET", good, func(r *http.Request) { r.Host = "attacker.example" }},
		{"foreign host with the port", "GET", good, func(r *http.Request) { r.Host = "attacker.example:" + r.URL.Port() }},
		{"loopback name in a foreign host", "GET", good, func(r *http.Request) { r.Host = "127.0.0.1.attacker.example:" + r.URL.Port() }},
		{"another port", "GET", good, func(r *http.Request) { r.Host = "127.0.0.1:1" }},
	} {
		status, header, page := c.send(tt.method, tt.url, tt.change)
		if status < 400 || header.Get("Cache-Control") != "no-store" || header.Get("Access-Control-Allow-Origin") != "" || strings.Contains(page, "evil") {
			t.Errorf("%s was answered with %d %v %s", tt.name, status, header, page)
		}
		c.checkWaiting(tt.name)
	}
	c.send(http.MethodGet, uri+"?code=good&state="+state, nil)
	if result := c.wait(); result.values.Get("code") != "good" {
		t.Errorf("the login returned %v, %v", result.values, result.err)
	}
}

// The text of an error may come from an attacker: iss is not checked yet.
func TestPageShowsNoParameter(t *testing.T) {
	t.Parallel()
	state := rand.Text()
	c, uri := startLogin(t, &Login{}, auth.LoginRequest{}, state)
	text := url.QueryEscape(`<script>alert("canary")</script>`)
	_, _, page := c.send(http.MethodGet, uri+"?error="+text+"&error_description="+text+"&error_uri="+text+"&iss="+text+"&state="+state, nil)
	if strings.Contains(page, "canary") || strings.Contains(page, "alert") {
		t.Errorf("the page is %s", page)
	}
	if result := c.wait(); !strings.Contains(result.values.Get("error_description"), "canary") {
		t.Errorf("the login returned %v, %v", result.values, result.err)
	}
}

func TestSecondRedirectChangesNothing(t *testing.T) {
	t.Parallel()
	f, err := redirects.listen("http://127.0.0.1/callback")
	if err != nil {
		t.Fatal(err)
	}
	defer f.endFlow()
	state := rand.Text()
	if err := f.begin("https://as.example/?state=" + state); err != nil {
		t.Fatal(err)
	}
	c := &testLogin{t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	for i := range 3 {
		status, _, page := c.send(http.MethodGet, fmt.Sprintf("%s?code=%d&state=%s", f.redirectURI, i, state), nil)
		if status != http.StatusOK || (i > 0) != strings.Contains(page, "already") {
			t.Errorf("request %d: %d %s", i, status, page)
		}
	}
	if values := <-f.redirects; values.Get("code") != "0" {
		t.Errorf("the code is %s", values.Get("code"))
	}
}

func TestFiveLoginsShareOneListener(t *testing.T) {
	t.Parallel()
	state := rand.Text()
	const logins = 5
	var all [logins]*testLogin
	var uris [logins]string
	for i := range logins {
		all[i], uris[i] = startLogin(t, &Login{}, auth.LoginRequest{}, state+strconv.Itoa(i))
		if uris[i] != uris[0] {
			t.Errorf("login %d has %s, and the first one %s", i, uris[i], uris[0])
		}
	}
	var group sync.WaitGroup
	for i := range logins {
		group.Go(func() {
			all[i].send(http.MethodGet, fmt.Sprintf("%s?code=code%d&state=%s%d", uris[i], i, state, i), nil)
		})
	}
	group.Wait()
	for i := range logins {
		if result := all[i].wait(); result.values.Get("code") != "code"+strconv.Itoa(i) {
			t.Errorf("login %d returned %v, %v", i, result.values, result.err)
		}
	}
}

func TestPortOfRegistrationIsUsedAgain(t *testing.T) {
	t.Parallel()
	polltest.UntilNil(t, func() error { return useRegisteredPort(t) })
}

// useRegisteredPort logs in with the redirect URI of an earlier registration, while its port is
// taken and while it is free. It returns an error if another program took the port after the test
// had freed it.
func useRegisteredPort(t *testing.T) error {
	state := rand.Text()
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	known := "http://" + free.Addr().String() + "/oauth/answer"
	taken := auth.LoginRequest{RedirectURIs: []string{known}}
	c, uri := startLogin(t, &Login{}, taken, state) // another program has the port
	if uri == known || !strings.HasSuffix(uri, "/callback") {
		t.Errorf("the redirect URI is %s", uri)
	}
	c.send(http.MethodGet, uri+"?code=1&state="+state, nil)
	c.wait()
	exact := taken
	exact.Exact = true
	if _, err := (&Login{}).Login(t.Context(), exact); !isPortTaken(err) {
		t.Errorf("the error is %v", err)
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	c, uri, err = tryLogin(t, &Login{}, exact, state)
	if isPortTaken(err) && cannotListen(free.Addr()) {
		return err
	}
	if err != nil {
		t.Fatal(err)
	}
	if uri != known {
		t.Errorf("the redirect URI is %s, want %s", uri, known)
	}
	c.send(http.MethodGet, uri+"?code=1&state="+state, nil)
	c.wait()
	return nil
}

// cannotListen reports whether a program listens at addr.
func cannotListen(addr net.Addr) bool {
	l, err := net.Listen(addr.Network()+"4", addr.String())
	if err == nil {
		_ = l.Close()
	}
	return err != nil
}

func isPortTaken(err error) bool {
	return err != nil && strings.Contains(err.Error(), "another program uses the port")
}

func TestLocalhostIsServedOnBothAddresses(t *testing.T) {
	t.Parallel()
	f, err := redirects.listen("http://localhost/callback")
	if err != nil {
		t.Fatal(err)
	}
	defer f.endFlow()
	if err := f.begin("https://as.example/?state=" + rand.Text()); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(f.port)))
		if err != nil && host == "::1" && !hasIPv6() {
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		_ = conn.Close()
	}
}

// hasIPv6 reports whether this machine has the address ::1.
func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

// pasteLines is a Login.Paste that returns lines, and then waits.
func pasteLines(lines ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if len(lines) == 0 {
			<-ctx.Done()
			return "", ctx.Err()
		}
		line := lines[0]
		lines = lines[1:]
		return line, nil
	}
}

func TestPastedAddress(t *testing.T) {
	t.Parallel()
	state := rand.Text()
	const uri = "https://panel.example/callback" // nothing listens there
	request := auth.LoginRequest{RedirectURIs: []string{uri}, Exact: true}
	var mu sync.Mutex
	var warnings []string
	l := &Login{
		Warn: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			warnings = append(warnings, err.Error())
		},
		Paste: pasteLines("", "hello", uri+"?code=evil&state=ffffffffffffffffffffffffffffffff",
			"https://attacker.example/callback?code=evil&state="+state, uri+"?code=evil&code=evil&state="+state,
			uri+"?code=evil", ` "`+uri+"?code=good&state="+state+"&iss=https%3A%2F%2Fas.example\" \n"),
	}
	c, _ := startLogin(t, l, request, state)
	result := c.wait()
	if result.err != nil || result.values.Get("code") != "good" || result.values.Get("iss") != "https://as.example" {
		t.Errorf("the login returned %v, %v", result.values, result.err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(warnings) != 6 { // that nothing listens, and five wrong lines
		t.Errorf("the warnings are %q", warnings)
	}
	for _, w := range warnings {
		if strings.Contains(w, "evil") {
			t.Errorf("a warning shows the code: %s", w)
		}
	}
}

func TestPastedQuery(t *testing.T) {
	t.Parallel()
	state := rand.Text()
	for _, prefix := range []string{"", "?"} {
		c, _ := startLogin(t, &Login{Paste: pasteLines(prefix + "code=good&state=" + state)}, auth.LoginRequest{}, state)
		if result := c.wait(); result.values.Get("code") != "good" {
			t.Errorf("the login returned %v, %v", result.values, result.err)
		}
	}
}

func TestLoginEndsAfterItsTime(t *testing.T) {
	t.Parallel()
	state := rand.Text()
	l := &Login{Timeout: time.Nanosecond, OpenBrowser: NoBrowser}
	_, err := l.Login(t.Context(), auth.LoginRequest{Server: server, Start: func(context.Context, string) (string, error) {
		return "https://as.example/?state=" + state, nil
	}})
	if needs, ok := errors.AsType[*auth.NeedsLogin](err); !ok || !strings.Contains(needs.Reason, "not completed within") {
		t.Errorf("the error is %v", err)
	}
}

func TestLoginRefusesURL(t *testing.T) {
	t.Parallel()
	state := rand.Text()
	for _, page := range []string{
		"javascript:alert(1)//?state=" + state, "file:///etc/passwd?state=" + state, "data:text/html,x?state=" + state,
		"HTTPS://as.example/?state=" + state, "https://as.example/?state=short", "https:///?state=" + state,
		"https://as.example/ -x?state=" + state, "-https://as.example/?state=" + state, "https://as.example/\n?state=" + state,
	} {
		l := &Login{OpenBrowser: func(page string) error { t.Errorf("the browser opens %s", page); return nil }, Show: func(p Page) { t.Errorf("the user sees %s", p.URL) }}
		_, err := l.Login(t.Context(), auth.LoginRequest{Start: func(context.Context, string) (string, error) { return page, nil }})
		if err == nil {
			t.Errorf("%s was accepted", page)
		}
	}
}

// A Paste that does not end with its context does not keep a login that the browser has completed.
func TestPasteThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	defer close(never)
	state := "0123456789abcdef-ignores"
	c, uri := startLogin(t, &Login{Paste: func(context.Context) (string, error) { <-never; return "", nil }}, auth.LoginRequest{}, state)
	c.send(http.MethodGet, uri+"?code=good&state="+state, nil)
	select {
	case result := <-c.result:
		if result.err != nil || result.values.Get("code") != "good" {
			t.Errorf("%v, %v", result.values, result.err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the login hangs")
	}
}

// A port that is taken on one of the two loopback addresses is not kept on the other.
func TestPortTakenOnOneAddress(t *testing.T) {
	t.Parallel()
	six, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return // a machine without IPv6
	}
	defer six.Close()
	port := strconv.Itoa(six.Addr().(*net.TCPAddr).Port)
	l := &redirectListener{bound: map[int]*boundPort{}}
	if _, err := l.listen("http://localhost:" + port + "/callback"); err == nil {
		t.Fatal("no error")
	}
	if len(l.bound) != 0 {
		t.Error("the port is still bound")
	}
}

func TestHangingPasteEndsWithLogin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlow("http://127.0.0.1:1/callback", 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			(&Login{Paste: pasteLines()}).readPasted(ctx, f)
			close(done)
		}()
		cancel()
		<-done
	})
}
