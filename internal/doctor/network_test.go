package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func TestNameAndTLSThatWork(t *testing.T) {
	h := streamable.Handler(exampleServer(), nil)
	t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	s := newUnstartedServer(t, h)
	s.StartTLS()
	o := client.Options{HTTP: client.HTTP{Client: s.Client()}}
	u := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	o.HTTP.Client.Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com" // which the certificate is for
	all := examineAll(t, Server{Target: u, Options: o})
	if got, want := joinNames(all), "definition > name > connect > TLS > HTTP > handshake > server > lists > end"; got != want {
		t.Errorf("the steps are %s", got)
	}
	checkContains(t, stepNamed(t, all, "name").Detail, "127.0.0.1")
	checkContains(t, stepNamed(t, all, "TLS").Detail, "TLS 1.3, certificate valid until 20")
}

// newCertificate returns a self-signed certificate for a name and a time, and a pool that trusts
// it.
func newCertificate(t *testing.T, name string, from, to time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else if name != "" {
		template.DNSNames = strings.Fields(name)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	for _, test := range []struct {
		name            string
		host            string
		from, to        time.Duration
		trusted         bool
		config          *tls.Config
		summary, advice string
	}{
		{name: "an unknown authority", host: "127.0.0.1", from: -day, to: 99 * day, summary: "an authority that this computer does not know", advice: "Add the authority's certificate"},
		{name: "expired", host: "127.0.0.1", from: -9 * day, to: -day, trusted: true, summary: "expired on 20", advice: "Renew the server's certificate"},
		{name: "not yet valid", host: "127.0.0.1", from: day, to: 9 * day, trusted: true, summary: "not valid before 20", advice: "clock"},
		{name: "a wrong name", host: "a.example b.example c.example d.example e.example f.example", from: -day, to: 99 * day, trusted: true, summary: "e.example, others and not for 127.0.0.1", advice: "host name that the certificate is for"},
		{name: "no name", from: -day, to: 99 * day, trusted: true, summary: "for no host", advice: "certificate"},
		{name: "a client certificate", host: "127.0.0.1", from: -day, to: 99 * day, trusted: true, config: &tls.Config{ClientAuth: tls.RequireAnyClientCert}, summary: "asks for a client certificate", advice: "Give the HTTP client a certificate"},
		{name: "an old client", host: "127.0.0.1", from: -day, to: 99 * day, trusted: true, config: &tls.Config{MinVersion: tls.VersionTLS13}, summary: "refuses the TLS handshake", advice: "TLS 1.2 or newer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cert, pool := newCertificate(t, test.host, now.Add(test.from), now.Add(test.to))
			s := newUnstartedServer(t, respondWith(200, ""))
			if s.TLS = test.config; s.TLS == nil {
				s.TLS = &tls.Config{}
			}
			s.TLS.Certificates = []tls.Certificate{cert}
			s.StartTLS()
			own := &tls.Config{}
			if test.trusted {
				own.RootCAs = pool
			}
			if test.name == "an old client" {
				own.MaxVersion = tls.VersionTLS12
			}
			way := &http.Transport{TLSClientConfig: own}
			defer way.CloseIdleConnections()
			p := Server{Target: s.URL, Options: client.Options{HTTP: client.HTTP{Client: &http.Client{Transport: way}}, Restart: client.Restart{Max: -1}}}
			step := failedStep(t, p)
			if step.Name != "TLS" || stepNamed(t, examineAll(t, p), "connect").Status != OK {
				t.Errorf("the step is %s", step.Name)
			}
			checkContains(t, step.Detail, test.summary)
			checkContains(t, step.Advice, test.advice)

			_, err := client.Dial(t.Context(), s.URL, &p.Options)
			if d := Explain(err, p); d.Step != "TLS" || d.Advice != step.Advice {
				t.Errorf("the diagnosis of the error is %+v", d)
			}
		})
	}
}

func TestCertificateThatExpiresSoon(t *testing.T) {
	cert, pool := newCertificate(t, "127.0.0.1", time.Now().Add(-time.Hour), time.Now().Add(73*time.Hour))
	h := streamable.Handler(exampleServer(), nil)
	t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	s := newUnstartedServer(t, h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.StartTLS()
	way := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	step := stepNamed(t, examineAll(t, Server{Target: streamable.URL{URL: s.URL, Client: &http.Client{Transport: way}}}), "TLS")
	if step.Status != Warning {
		t.Errorf("%+v", step)
	}
	checkContains(t, step.Advice, "expires in 3 days")
}

func TestWrongScheme(t *testing.T) {
	plain := startServer(t, respondWith(200, ""))
	s := failedStep(t, Server{Target: strings.Replace(plain.URL, "http:", "https:", 1)})
	if s.Name != "TLS" {
		t.Errorf("the step is %s", s.Name)
	}
	checkContains(t, s.Advice, "http:// in place of https://")

	secure := newUnstartedServer(t, respondWith(200, ""))
	secure.StartTLS()
	s = failedStep(t, Server{Target: strings.Replace(secure.URL, "https:", "http:", 1)})
	checkContains(t, s.Detail, "HTTP", "HTTPS")
}

// listenRaw listens on a port and passes every connection to treat.
func listenRaw(t *testing.T, treat func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			treat(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	hangsUp := listenRaw(t, func(c net.Conn) { c.Close() })
	var held []net.Conn
	t.Cleanup(func() {
		for _, c := range held {
			c.Close()
		}
	})
	silent := listenRaw(t, func(c net.Conn) { held = append(held, c) })
	speaksTLS := listenRaw(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write([]byte("\x15\x03\x01\x00\x02\x02\x16"))
		c.Close()
	})
	for _, test := range []struct {
		name, url       string
		step            string
		summary, advice string
		isSilent        bool
	}{
		{"a closed port", "http://" + closed, "connect", "nothing listens at " + closed, "Start the server", false},
		{"a name that is none", "http://no-such-host.invalid/mcp", "name", "no-such-host.invalid", "ame", false},
		{"a port that hangs up", "http://" + hangsUp, "HTTP", "hangs up", "speaks HTTP", false},
		{"a port that hangs up on TLS", "https://" + hangsUp, "TLS", "hangs up", "speaks HTTP", false},
		{"a silent port", "http://" + silent, "HTTP", ": the server has taken the request", "hangs", true},
		{"a port silent on TLS", "https://" + silent, "TLS", "has not ended", "https", true},
		{"TLS", "http://" + speaksTLS, "HTTP", "speaks TLS", "https:// in place of http://", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s Step
			if test.isSilent {
				s = timedOutStep(t, Server{Target: test.url}, func(s Step) bool { return s.Name == test.step })
				checkContains(t, s.Detail, "no connection within ")
			} else {
				s = failedStep(t, Server{Target: test.url})
			}
			if s.Name != test.step {
				t.Errorf("the step is %s", s.Name)
			}
			checkContains(t, s.Detail, test.summary)
			checkContains(t, s.Advice, test.advice)
		})
	}
}

// optionsWithDial returns options with an HTTP client that connects with dial.
func optionsWithDial(dial func(context.Context, string, string) (net.Conn, error)) client.Options {
	return client.Options{HTTP: client.HTTP{Client: &http.Client{Transport: &http.Transport{DialContext: dial}}}, Limits: client.Limits{Connect: 300 * time.Millisecond}}
}

func TestSlowNetwork(t *testing.T) {
	wait := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	s := failedStep(t, Server{Target: "http://10.255.255.1/mcp", Options: optionsWithDial(wait)})
	if s.Name != "connect" {
		t.Errorf("the step is %s", s.Name)
	}
	checkContains(t, s.Detail, "the address does not answer")
}

func TestProxies(t *testing.T) {
	h := streamable.Handler(exampleServer(), nil)
	t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	passes := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host, r.URL.Host, r.URL.Scheme = "127.0.0.1", "", ""
		h.ServeHTTP(w, r)
	}))
	refuses := startServer(t, respondWith(http.StatusProxyAuthRequired, ""))
	through := func(proxy string) Server {
		u, err := url.Parse(proxy)
		if err != nil {
			t.Fatal(err)
		}
		return Server{Target: "http://far.invalid/mcp", Options: client.Options{HTTP: client.HTTP{Client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u)}}}}}
	}

	t.Setenv("HTTP_PROXY", "http://somewhere.invalid")
	p := through(strings.Replace(passes.URL, "http://", "http://user:pass-word@", 1))
	all := examineAll(t, p)
	checkContains(t, stepNamed(t, all, "proxy").Detail, "127.0.0.1:", "as HTTP_PROXY says")
	if got := joinNames(all); !strings.HasSuffix(got, "lists > end") || strings.Contains(fmt.Sprint(all), "pass-word") {
		t.Errorf("the steps are %s", got)
	}
	if s := stepNamed(t, examineAll(t, Server{Target: passes.URL}), "proxy"); s.Status != Skipped {
		t.Errorf("a proxy that does not apply: %+v", s)
	}

	gone := startServer(t, respondWith(200, ""))
	gone.Close()
	s := failedStep(t, through(gone.URL))
	checkContains(t, s.Detail, "proxy cannot be reached")
	checkContains(t, s.Advice, "NO_PROXY")

	p = through(refuses.URL)
	p.Target = "https://far.invalid/mcp"
	s = failedStep(t, p)
	checkContains(t, s.Detail, "asks for a login")

	p.Options.HTTP.Client.Transport = &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("no proxy today") }}
	t.Setenv("HTTPS_PROXY", "::")
	s = failedStep(t, p)
	checkContains(t, s.Detail, "no proxy today")
	checkContains(t, s.Advice, "HTTPS_PROXY")
	t.Setenv("HTTPS_PROXY", "")
	checkContains(t, failedStep(t, p).Advice, "HTTP client")
}

// The examination uses the dial functions of the HTTP client, deprecated ones included.
func TestOwnDialFunctions(t *testing.T) {
	h := streamable.Handler(exampleServer(), nil)
	t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	s := newUnstartedServer(t, h)
	s.StartTLS()
	dialed := 0
	for name, way := range map[string]*http.Transport{
		"DialTLSContext": {DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed++
			d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
			return d.DialContext(ctx, network, address)
		}},
		"Dial": {TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Dial: func(network, address string) (net.Conn, error) {
			dialed++
			return net.Dial(network, address)
		}},
	} {
		dialed = 0
		all := examineAll(t, Server{Target: streamable.URL{URL: s.URL, Client: &http.Client{Transport: way}}})
		if got := joinNames(all); dialed == 0 || !strings.HasSuffix(got, "HTTP > handshake > server > lists > end") {
			t.Errorf("%s: %d dials, %s", name, dialed, got)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A foreign round tripper is used unchanged.
func TestForeignRoundTripper(t *testing.T) {
	h := streamable.Handler(exampleServer(), nil)
	t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	s := startServer(t, h)
	o := client.Options{HTTP: client.HTTP{Client: &http.Client{Transport: roundTrip(s.Client().Transport.RoundTrip)}}}
	if got := joinNames(examineAll(t, Server{Target: s.URL, Options: o})); got != "definition > name(skipped) > connect > HTTP > handshake > server > lists > end" {
		t.Error(got)
	}
	if got := joinNames(examineAll(t, Server{Target: s.URL, Options: o})); got != "definition > connect(skipped) > HTTP > handshake > server > lists > end" {
		t.Error(got)
	}
}
