package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/client"
)

// authContext is the context that the suite gives the client in some scenarios of authorization.
type authContext struct {
	Name          string `json:"name"`
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	PrivateKey    string `json:"private_key_pem"`
	IDPClientID   string `json:"idp_client_id"`
	IDPToken      string `json:"idp_id_token"`
	IDPEndpoint   string `json:"idp_token_endpoint"`
	WorkloadToken string `json:"valid_jwt"`
}

// authorize returns the HTTP settings for a scenario: without authorization, the zero value.
func authorize(target string) (client.HTTP, error) {
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	if !strings.HasPrefix(scenario, "auth/") {
		return client.HTTP{}, nil
	}
	var given authContext
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &given); err != nil {
			return client.HTTP{}, fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	opts, err := given.options(scenario)
	if err != nil {
		return client.HTTP{}, err
	}
	t, err := auth.NewTransport(target, opts)
	return client.HTTP{Client: &http.Client{Transport: t}}, err
}

func (c authContext) options(scenario string) (*auth.Options, error) {
	o := &auth.Options{
		Login:  auth.LoginFunc(logIn),
		Client: auth.Client{ID: c.ClientID, Secret: c.ClientSecret, DocumentURL: "https://conformance-test.local/client-metadata.json"},
	}
	var err error
	switch scenario {
	case "auth/client-credentials-basic":
		o.ClientCredentials = true
	case "auth/client-credentials-jwt":
		o.ClientCredentials = true
		o.Client.Key, err = parseKey(c.PrivateKey)
	case "auth/enterprise-managed-authorization":
		idp := &auth.Enterprise{
			TokenURL: c.IDPEndpoint, ClientID: c.IDPClientID, IDToken: func(context.Context) (string, error) { return c.IDPToken, nil },
		}
		o.Assertion = idp.Assert
	case "auth/wif-jwt-bearer":
		o.Client = auth.Client{}
		o.Assertion = func(context.Context, auth.AssertionRequest) (string, error) { return c.WorkloadToken, nil }
	}
	return o, err
}

func parseKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("private_key_pem is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

// logIn plays a user who agrees at once, and a browser: a GET that follows no redirect.
func logIn(ctx context.Context, r auth.LoginRequest) (url.Values, error) {
	page, err := r.Start(ctx, "http://localhost:3000/callback")
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil, fmt.Errorf("the authorization endpoint answers with status %d and no redirect", resp.StatusCode)
	}
	return to.Query(), nil
}
