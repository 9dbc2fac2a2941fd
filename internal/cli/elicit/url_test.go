package elicit

import (
	"net/url"
	"strings"
	"testing"
)

func TestURLsAreShownWhole(t *testing.T) {
	for _, test := range []struct{ url, host string }{
		{"https://example.com/login?next=https://evil.com", "example.com"},
		{"https://bank.com@evil.com/", "evil.com"},
		{"https://bank.com:pw@evil.com:8443/", "evil.com:8443"},
		{"https://evil.com\\@bank.com/", "evil.com"},
		{"https://[::1]:80/x", "[::1]:80"},
		{"https://b\u0430nk.com/", `b\u{430}nk.com`},
		{"https://example.com", "example.com"},
	} {
		before, host, after := SplitURL(test.url)
		if host != test.host {
			t.Errorf("%s: the host is %q, want %q", test.url, host, test.host)
		}
		if whole := before + host + after; whole != escapeURL(test.url) {
			t.Errorf("%s: shown as %s", test.url, whole)
		}
	}
}

func TestDoubts(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"https://example.com/xn--path", ""},
		{"http://localhost:8080/", ""},
		{"http://127.0.0.1/", ""},
		{"https://xn--bnk-5cd.com/", "punycode"},
		{"https://login.xn--bnk-5cd.com/", "punycode"},
		{"https://b\u0430nk.com/", "imitate"},
		{"https://bank.com@evil.com/", "part before @"},
		{"http://example.com/", "not protected"},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(URLWarnings(u), "; ")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.url, got, test.want)
		}
	}
}
