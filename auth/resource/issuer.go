package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/go-jose/go-jose/v4"
)

// issuer is an authorization server, with its keys and metadata.
type issuer struct {
	Issuer
	client     *http.Client
	url        *url.URL
	algorithms []jose.SignatureAlgorithm
	keys       *keySet

	metadata issuerMetadata
	log      *slog.Logger
	now      func() time.Time
}

const (
	fetchTimeout = 10 * time.Second
	maxDocument  = 1 << 20 // bytes of an answer of an issuer
)

func newIssuer(described Issuer, client *http.Client, s *Server) (*issuer, error) {
	u, err := parseURL(described.URL)
	if err != nil {
		return nil, fmt.Errorf("resource: issuer: %w", err)
	}
	i := &issuer{Issuer: described, client: client, url: u, log: s.log, now: func() time.Time { return s.now() }}
	if i.algorithms, err = readAlgorithms(described.Algorithms); err != nil {
		return nil, fmt.Errorf("resource: issuer %s: %w", described.URL, err)
	}
	addresses := []string{described.KeySetURL}
	if described.Introspection != nil {
		addresses = append(addresses, described.Introspection.URL)
	}
	for _, address := range addresses {
		if address == "" {
			continue
		}
		if _, err := url.Parse(address); err != nil {
			return nil, fmt.Errorf("resource: issuer %s: %w", described.URL, err)
		}
	}
	i.keys = &keySet{issuer: i, log: s.log}
	return i, nil
}

// endpoint returns an address from the configuration, or else from the metadata of the issuer.
func (i *issuer) endpoint(ctx context.Context, configured, name string, field func(*oauth.ServerMetadata) string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	m, err := i.readMetadata(ctx)
	if err != nil {
		return "", err
	}
	address := field(m)
	if address == "" {
		return "", fmt.Errorf("the metadata of %s has no %s: set its address", i.URL, name)
	}
	if _, err := parseEndpoint(address); err != nil {
		return "", fmt.Errorf("%s in the metadata of %s: %w", name, i.URL, err)
	}
	return address, nil
}

// parseEndpoint is [parseURL] for an address that may have a query.
func parseEndpoint(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	u.RawQuery = ""
	return parseURL(u.String())
}

// fetch reads a JSON document into v.
func (i *issuer) fetch(ctx context.Context, address string, v any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	return i.readDocument(r, v)
}

// readDocument sends a request and reads the JSON document of the answer into v.
func (i *issuer) readDocument(r *http.Request, v any) (http.Header, error) {
	resp, err := i.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers with status %d", r.URL.Redacted(), resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.URL.Redacted(), err)
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("%s answers with more than %d bytes", r.URL.Redacted(), maxDocument)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, fmt.Errorf("%s answers with no JSON: %w", r.URL.Redacted(), err)
	}
	return resp.Header, nil
}
