//go:build !race

package auth

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// answering is a base that answers each request at once.
type answering struct{ resp *http.Response }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a.resp, nil }

// maxAdded is the number of allocations that authorization may add to a request.
const maxAdded = 6

func TestAllocationsOfAuthorizedRequest(t *testing.T) {
	base := answering{&http.Response{StatusCode: http.StatusOK, Body: http.NoBody}}
	store := NewStore()
	tr, err := NewTransport("https://a.example/mcp", &Options{Store: store, Base: base})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Update(t.Context(), tr.key, func(*Record) (*Record, error) {
		return &Record{
			Server: tr.server, AccessToken: "token", RefreshToken: "refresh", ObtainedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a.example/mcp", io.NopCloser(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Accept", "Content-Type", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version"} {
		r.Header.Set(name, "x")
	}
	added := testing.AllocsPerRun(100, func() {
		if _, err := tr.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("authorization adds %.0f allocations to a request", added)
	if added > maxAdded {
		t.Errorf("authorization adds %.0f allocations to a request, at most %d are allowed", added, maxAdded)
	}
}
