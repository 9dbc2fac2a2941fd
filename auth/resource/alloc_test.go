package resource

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// maxCachedAllocs bounds the allocations of Protect for a token that it knows: the request and the
// context that carry the token to the handler.
const maxCachedAllocs = 2

// newCachedRequest returns a handler and a request whose token it knows.
func newCachedRequest(t testing.TB) (http.Handler, *http.Request) {
	as := authtest.Start(t, nil)
	s, err := New(Options{
		URL: publicURL, Issuers: []Issuer{{URL: as.Issuer}}, Scopes: []string{"a"}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	served := false
	h := s.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served = FromContext(r.Context()) != nil }))
	r := newPOST(publicURL, "Bearer "+as.IssueToken(publicURL, "a"))
	if h.ServeHTTP(httptest.NewRecorder(), r); !served {
		t.Fatal("the token is refused")
	}
	return h, r
}

func TestCachedTokenAllocations(t *testing.T) {
	h, r := newCachedRequest(t)
	w := httptest.NewRecorder()
	if got := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); got > maxCachedAllocs {
		t.Errorf("a request with a known token allocates %v times, want at most %d", got, maxCachedAllocs)
	}
}

// BenchmarkProtect measures a request with a token that is known, with a new signed token, and with
// a proof of possession.
func BenchmarkProtect(b *testing.B) {
	b.Run("cached", func(b *testing.B) {
		h, r := newCachedRequest(b)
		w := httptest.NewRecorder()
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(w, r)
		}
	})
	as := authtest.Start(b, nil)
	s, err := New(Options{URL: publicURL, Issuers: []Issuer{{URL: as.Issuer}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	token := as.IssueToken(publicURL)
	b.Run("new token", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v := s.verify(b.Context(), s.issuers[0], token); v.err != nil {
				b.Fatal(v.err)
			}
		}
	})
	b.Run("proof", func(b *testing.B) {
		key, err := oauth.NewDPoPKey()
		if err != nil {
			b.Fatal(err)
		}
		claims := oauth.ProofClaims{Method: "POST", URL: publicURL, Token: token}
		proof, err := key.MakeProof(claims, as.Now())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := oauth.VerifyProof([]string{proof}, claims, proofAlgorithms, as.Now(), proofWindow); err != nil {
				b.Fatal(err)
			}
		}
	})
}
