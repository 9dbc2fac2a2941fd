package work

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/resource"
	"github.com/dowel-mcp/dowel/bench/dowel"
	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// The contestants of authorization. Both are dowel.
const (
	withoutToken = "without"
	withToken    = "authorized"
)

// authorizations measures a call over HTTP with an access token, which the client has got before
// and the server knows, and the same call without authorization.
func authorizations() (items []Item) {
	for _, width := range []int{1, 64} {
		flight := "one at a time"
		if width > 1 {
			flight = fmt.Sprintf("%d in flight", width)
		}
		items = append(items, Item{
			Name:        fmt.Sprintf("authorization/%d", width),
			Table:       "A small call over HTTP with an access token",
			Rows:        []Row{{flight, Time, Bound{Base: 1.1}}, {flight + ", allocations", Allocs, Bound{}}},
			Contestants: []string{withoutToken, withToken},
			Measure: func(ctx context.Context, contestant string, o Options) (Result, error) {
				return measureAuthorization(ctx, contestant, width, o.withDefaults())
			},
		})
	}
	return items
}

func measureAuthorization(ctx context.Context, contestant string, width int, o Options) (Result, error) {
	h, err := dowel.Peer{}.NewServer(1).(*dowel.Server).Handler(peer.Modern, false)
	if err != nil {
		return nil, err
	}
	served := httptest.NewServer(nil)
	defer served.Close()
	base := &http.Transport{MaxIdleConnsPerHost: conns}
	defer base.CloseIdleConnections()
	own := &http.Client{Transport: base}
	if contestant == withToken {
		issuer, err := newIssuer()
		if err != nil {
			return nil, err
		}
		defer issuer.Close()
		guard, err := resource.New(resource.Options{URL: served.URL + "/mcp", Issuers: []resource.Issuer{{URL: issuer.URL}}})
		if err != nil {
			return nil, err
		}
		h = guard.Protect(h)
		own.Transport, err = auth.NewTransport(served.URL+"/mcp", &auth.Options{
			Base: base, ClientCredentials: true, Client: auth.Client{ID: "bench", Secret: "secret"},
		})
		if err != nil {
			return nil, err
		}
	}
	served.Config.Handler = h
	c, err := client.Dial(ctx, served.URL+"/mcp", &client.Options{HTTP: client.HTTP{Client: own}, Wire: client.Wire{Revision: mcp.LatestRevision}, NoCache: true})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return o.repeat(width, here, func() error {
		got, err := client.Call[string](context.Background(), c, "echo", peer.Echo{Message: "hello"})
		if err == nil && got != "hello" {
			err = fmt.Errorf("the answer is %q", got)
		}
		return err
	})
}

// newIssuer starts an authorization server that gives every client a signed token.
func newIssuer() (*httptest.Server, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey.Bytes() // 4, x and y
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	encode := base64.RawURLEncoding.EncodeToString
	write := func(w http.ResponseWriter, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client reports what is missing
	}
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{
			"issuer": s.URL, "token_endpoint": s.URL + "/token", "jwks_uri": s.URL + "/keys", "response_types_supported": []string{"code"},
			"grant_types_supported": []string{"client_credentials"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1", "x": encode(public[1:33]), "y": encode(public[33:]),
		}}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		now := time.Now().Unix()
		header, _ := json.Marshal(map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": "1"})
		claims, _ := json.Marshal(map[string]any{
			"iss": s.URL, "aud": r.PostFormValue("resource"), "sub": "bench", "client_id": "bench", "iat": now, "exp": now + 3600, "jti": rand.Text(),
		})
		signed := encode(header) + "." + encode(claims)
		digest := sha256.Sum256([]byte(signed))
		x, y, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		signature := append(x.FillBytes(make([]byte, 32)), y.FillBytes(make([]byte, 32))...)
		write(w, map[string]any{"access_token": signed + "." + encode(signature), "token_type": "Bearer", "expires_in": 3600})
	})
	return s, nil
}
