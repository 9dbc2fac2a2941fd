package console_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/console"
)

// api answers every request with its method and path.
var api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, `"`+r.Method+" "+r.URL.EscapedPath()+`"`)
})

// page is a console at a loopback address, and the requests of a browser or an attacker.
type page struct {
	t       *testing.T
	console *console.Console
	base    string
}

func serveConsole(t *testing.T, o console.Options) *page {
	t.Helper()
	if o.API == nil {
		o.API = api
	}
	c := console.New(o)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	return &page{t, c, web.URL}
}

// send sends a request with header fields as pairs of name and value. The name Host sets the host.
func (p *page) send(method, path, body string, fields ...string) (*http.Response, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			r.Host = fields[i+1]
			continue
		}
		r.Header.Add(fields[i], fields[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp, string(text)
}

// ticket returns a new ticket.
func (p *page) ticket() string {
	_, ticket, _ := strings.Cut(p.console.LoginURL(p.base), "#login=")
	return ticket
}

var asJSON = []string{"Content-Type", "application/json"}

// logIn returns the header field with a token.
func (p *page) logIn() []string {
	p.t.Helper()
	resp, text := p.send("POST", "/console/api/login", `{"ticket":"`+p.ticket()+`"}`, asJSON...)
	var answer struct{ Token string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || resp.StatusCode != http.StatusOK || answer.Token == "" {
		p.t.Fatalf("%d %s", resp.StatusCode, text)
	}
	return []string{"Authorization", "Bearer " + answer.Token}
}

// Every route refuses what a browser sends for another page, or without a token.
func TestRefusals(t *testing.T) {
	t.Parallel()
	p := serveConsole(t, console.Options{})
	own := p.logIn()
	host := strings.TrimPrefix(p.base, "http://")
	_, port, _ := net.SplitHostPort(host)
	for _, test := range []struct {
		name, method, path string
		fields             []string
		code               int
	}{
		{"the page", "GET", "/console/", nil, 200},
		{"the page, typed", "GET", "/console/wire?q=x", []string{"Sec-Fetch-Site", "none"}, 200},
		{"its own fetch", "GET", "/console/api/v1/status", append([]string{"Sec-Fetch-Site", "same-origin"}, own...), 200},
		{"its own origin", "POST", "/console/api/v1/reload", append([]string{"Origin", p.base, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json"}, own...), 200},
		{"another name of this machine", "GET", "/console/api/v1/status", append([]string{"Host", "localhost:" + port}, own...), 200},
		{"no token", "GET", "/console/api/v1/status", nil, 401},
		{"wrong token", "GET", "/console/api/v1/status", []string{"Authorization", "Bearer x"}, 401},
		{"token as a cookie", "GET", "/console/api/v1/status", []string{"Cookie", "token=" + own[1]}, 401},
		{"token in the address", "GET", "/console/api/v1/status?token=" + own[1][len("Bearer "):], nil, 401},
		{"foreign host", "GET", "/console/", []string{"Host", "attacker.example"}, 403},
		{"foreign host with a token", "GET", "/console/api/v1/status", append([]string{"Host", "attacker.example:" + port}, own...), 403},
		{"address of another machine", "GET", "/console/", []string{"Host", "192.0.2.1"}, 403},
		{"0.0.0.0", "GET", "/console/", []string{"Host", "0.0.0.0:" + port}, 403},
		{"page of another port", "GET", "/console/api/v1/status", append([]string{"Origin", "http://127.0.0.1:3000"}, own...), 403},
		{"page of another name", "GET", "/console/api/v1/status", append([]string{"Origin", "http://localhost:" + port}, own...), 403},
		{"page without an origin", "POST", "/console/api/v1/reload", append([]string{"Origin", "null", "Content-Type", "application/json"}, own...), 403},
		{"two origins", "GET", "/console/", []string{"Origin", p.base, "Origin", "http://attacker.example"}, 403},
		{"fetch of another site", "GET", "/console/api/v1/status", append([]string{"Sec-Fetch-Site", "cross-site"}, own...), 403},
		{"fetch of another port", "GET", "/console/api/v1/status", append([]string{"Sec-Fetch-Site", "same-site"}, own...), 403},
		{"link of another site", "GET", "/console/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"image of another port", "GET", "/console/", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Dest", "image"}, 403},
		{"form", "POST", "/console/api/v1/reload", append([]string{"Content-Type", "text/plain"}, own...), 415},
		{"form with fields", "POST", "/console/api/login", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"no type", "POST", "/console/api/v1/reload", own, 415},
		{"preflight", "OPTIONS", "/console/api/v1/reload", append([]string{"Access-Control-Request-Method", "POST"}, own...), 415},
		{"PUT", "PUT", "/console/api/v1/status", append(asJSON, own...), 415},
		{"writing files", "POST", "/console/", asJSON, 405},
		{"login by GET", "GET", "/console/api/login?ticket=" + p.ticket(), nil, 405},
		{"file above", "GET", "/console/~x/../console.go", nil, 404},
	} {
		resp, text := p.send(test.method, test.path, "", test.fields...)
		if resp.StatusCode != test.code {
			t.Errorf("%s: %d %s, want %d", test.name, resp.StatusCode, text, test.code)
		}
		h := resp.Header
		if !strings.Contains(h.Get("Content-Security-Policy"), "require-trusted-types-for 'script'; trusted-types 'none'") || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Set-Cookie") != "" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", test.name, h)
		}
		if strings.Contains(text, own[1][len("Bearer "):]) {
			t.Errorf("%s: the answer has the token", test.name)
		}
	}
}

// A refusal of the owner says what to do.
func TestRefusalAdvice(t *testing.T) {
	t.Parallel()
	p := serveConsole(t, console.Options{})
	if _, text := p.send("GET", "/console/", "", "Host", "dev.example:7800"); !strings.Contains(text, "--host dev.example") {
		t.Error(text)
	}
	named := serveConsole(t, console.Options{Hosts: []string{"dev.example"}})
	if resp, text := named.send("GET", "/console/", "", "Host", "dev.example:7800"); resp.StatusCode != http.StatusOK {
		t.Error(text)
	}
}

// A ticket counts once and for a minute, a token for half a day without use.
func TestLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := console.New(console.Options{API: api})
		send := func(method, path, body, token string) int {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			c.ServeHTTP(w, r)
			return w.Code
		}
		redeem := func(ticket string) (code int, token string) {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1/console/api/login", strings.NewReader(`{"ticket":"`+ticket+`"}`))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			c.ServeHTTP(w, r)
			var answer struct{ Token string }
			_ = json.Unmarshal(w.Body.Bytes(), &answer) // an error leaves it empty
			return w.Code, answer.Token
		}
		newTicket := func() string { return strings.TrimPrefix(c.LoginURL(""), "/console/#login=") }

		late := newTicket()
		time.Sleep(console.TicketLife + time.Second)
		if code, _ := redeem(late); code != http.StatusUnauthorized {
			t.Errorf("a late ticket: %d", code)
		}
		ticket := newTicket()
		time.Sleep(console.TicketLife)
		code, token := redeem(ticket)
		if code != http.StatusOK || token == "" {
			t.Fatalf("a ticket: %d", code)
		}
		if code, _ := redeem(ticket); code != http.StatusUnauthorized {
			t.Errorf("a used ticket: %d", code)
		}
		if code, _ := redeem(""); code != http.StatusUnauthorized {
			t.Errorf("no ticket: %d", code)
		}
		for range 3 { // use keeps it
			time.Sleep(console.IdleLife - time.Second)
			if code := send("GET", "/console/api/v1/status", "", token); code != http.StatusOK {
				t.Errorf("a used token: %d", code)
			}
		}
		time.Sleep(console.IdleLife + time.Second)
		if code := send("GET", "/console/api/v1/status", "", token); code != http.StatusUnauthorized {
			t.Errorf("an idle token: %d", code)
		}

		_, token = redeem(newTicket())
		if code := send("POST", "/console/api/logout", "", token); code != http.StatusOK {
			t.Errorf("logout: %d", code)
		}
		if code := send("GET", "/console/api/v1/status", "", token); code != http.StatusUnauthorized {
			t.Errorf("after the logout: %d", code)
		}
		first := newTicket()
		for range 100 {
			newTicket()
		}
		if code, _ := redeem(first); code != http.StatusUnauthorized {
			t.Errorf("the oldest of many tickets: %d", code)
		}
	})
}

// Logging out ends the streams of the page.
func TestLogoutEndsStreams(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan struct{})
	p := serveConsole(t, console.Options{API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		close(ended)
	})})
	own := p.logIn()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", p.base+"/console/api/v1/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(own[0], own[1])
	go func() {
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	<-started
	p.send("POST", "/console/api/logout", "", append(asJSON, own...)...)
	<-ended
}

// A console that only reads refuses everything else, and names of servers keep their slashes.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, readOnly := range []bool{false, true} {
		p := serveConsole(t, console.Options{ReadOnly: readOnly})
		own := p.logIn()
		if resp, text := p.send("GET", "/console/api/v1/servers/a%2Fb/logs", "", own...); resp.StatusCode != http.StatusOK || text != `"GET /v1/servers/a%2Fb/logs"` {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
		resp, text := p.send("POST", "/console/api/v1/servers/a/restart", "{}", append(asJSON, own...)...)
		if refused := resp.StatusCode == http.StatusForbidden && strings.Contains(text, "--console=on"); refused != readOnly {
			t.Errorf("read only %v: %d %s", readOnly, resp.StatusCode, text)
		}
	}
}
