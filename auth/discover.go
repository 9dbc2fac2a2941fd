package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/oauth"
)

// discovery holds the facts about the authorization server of an MCP server.
type discovery struct {
	server   *oauth.ServerMetadata
	raw      []byte   // the metadata of the authorization server
	resource string   // value of the resource parameter; empty if it is omitted
	scopes   []string // scopes_supported of the resource
	dpop     bool     // the resource takes DPoP tokens
	legacy   bool     // found by the rules of revision 2025-03-26
	isGuess  bool     // no document describes the endpoints
	quirks   quirks
	tried    []Attempt
}

// explorer makes one discovery and records its attempts.
type explorer struct {
	t     *Transport
	tried []Attempt
	seen  map[string]bool
}

// discover finds the authorization server of the MCP server (specification,
// authorization-server-discovery), and applies the options and the known quirks of the issuer.
func (t *Transport) discover(ctx context.Context, n *need, r *Record) (*discovery, error) {
	e := &explorer{t: t, seen: map[string]bool{}}
	d, err := e.explore(ctx, n, r)
	if err != nil {
		failed := &DiscoveryError{Server: t.server, Reason: err.Error(), tried: e.tried}
		if broken, ok := errors.AsType[*brokenRule](err); ok {
			failed.Setting = broken.setting
		}
		return nil, failed
	}
	d.tried = e.tried
	d.quirks = quirksOf(d.server.Issuer)
	d.dpop = d.dpop || n.challenge.dpop || t.opts.DPoP
	switch given := t.opts.Server; {
	case given.OmitResource || given.Resource == "" && d.quirks.omitResource:
		d.resource = ""
	case given.Resource != "":
		d.resource = given.Resource
	}
	return d, nil
}

func (e *explorer) explore(ctx context.Context, n *need, r *Record) (*discovery, error) {
	resource, err := e.readResource(ctx, n.challenge.metadataURL)
	if err != nil {
		return nil, err
	}
	d := &discovery{}
	if resource != nil {
		d.resource, d.scopes = resource.Resource, resource.ScopesSupported
		d.dpop = len(resource.DPoPAlgorithms) > 0 || resource.DPoPRequired
	}
	issuers := e.candidates(resource, r)
	if given := e.t.opts.Server; given.AuthorizationURL != "" || given.TokenURL != "" || given.MetadataURL != "" || len(issuers) > 0 {
		if resource == nil {
			d.resource = e.t.server
		}
		return d, e.chooseServer(ctx, d, issuers)
	}
	if e.t.opts.Server.NoFallback {
		return nil, errors.New("it has no protected resource metadata")
	}
	return d, e.fallBack(ctx, d)
}

// candidates returns the issuers to try: the issuer of the options, or all that the resource names.
// An issuer with a registration comes first.
func (e *explorer) candidates(resource *oauth.ResourceMetadata, r *Record) []string {
	const maxIssuers = 5
	if given := e.t.opts.Server.Issuer; given != "" {
		return []string{given}
	}
	if resource == nil {
		return nil
	}
	issuers := slices.Clone(resource.AuthorizationServers)
	if r != nil {
		if i := slices.Index(issuers, r.Issuer); i > 0 {
			issuers[0], issuers[i] = issuers[i], issuers[0]
		}
	}
	return issuers[:min(len(issuers), maxIssuers)]
}

// readResource reads the metadata of the MCP server: from the address in the challenge, else from
// the well-known ones. It returns nil if no address has metadata.
func (e *explorer) readResource(ctx context.Context, fromChallenge string) (*oauth.ResourceMetadata, error) {
	urls := oauth.ResourceMetadataURLs(e.t.url)
	if fromChallenge != "" {
		urls = slices.Insert(urls, 0, fromChallenge)
	}
	var refused error
	for _, u := range urls {
		if e.seen[u] {
			continue
		}
		var m oauth.ResourceMetadata
		_, found, err := e.read(ctx, u, &m)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		if given := e.t.opts.Server.Resource; given != "" && m.Resource == given && len(m.AuthorizationServers) > 0 {
			return &m, nil
		}
		if err = checkResource(&m, e.t.url); err == nil {
			return &m, nil
		}
		e.reject(err)
		if refused == nil {
			refused = fmt.Errorf("its protected resource metadata cannot be used: %w", err)
		}
	}
	return nil, refused
}

// checkResource validates the metadata of a resource (RFC 9728, section 3.3).
//
// The tolerance resource-prefix accepts a resource of the server's origin if its path is a prefix
// of the server's path, in whole segments: metadata at the root of a host names the host.
func checkResource(m *oauth.ResourceMetadata, server *url.URL) error {
	if len(m.AuthorizationServers) == 0 {
		return &brokenRule{errors.New("it names no authorization server"), "authorization-server-discovery: protected resource metadata", "Issuer"}
	}
	u, err := url.Parse(m.Resource)
	if err != nil || u.Host == "" {
		return fmt.Errorf("its resource is %q, not a URL", shorten(m.Resource))
	}
	path, prefix := strings.TrimRight(server.EscapedPath(), "/"), strings.TrimRight(u.EscapedPath(), "/")
	isPrefix := path == prefix || strings.HasPrefix(path, prefix+"/")
	sameQuery := u.RawQuery == "" || u.RawQuery == server.RawQuery && path == prefix
	if !httpwire.SameOrigin(u, server) || !isPrefix || !sameQuery || u.Fragment != "" || u.User != nil {
		return &brokenRule{fmt.Errorf("its resource is %s, want %s", shorten(m.Resource), server), "RFC 9728, section 3.3", "Resource"}
	}
	return nil
}

// chooseServer reads the metadata of the first issuer that may be used.
func (e *explorer) chooseServer(ctx context.Context, d *discovery, issuers []string) error {
	given := e.t.opts.Server
	expected := ""
	if len(issuers) > 0 {
		expected = issuers[0]
	}
	if given.AuthorizationURL != "" || given.TokenURL != "" {
		return d.useEndpoints(given, expected, e.t.url)
	}
	if given.MetadataURL != "" {
		return e.readServer(ctx, d, []string{given.MetadataURL}, given.Issuer)
	}
	var first error
	for _, issuer := range issuers {
		u, err := checkSecure(issuer)
		if err == nil && (u.RawQuery != "" || u.Fragment != "") {
			err = fmt.Errorf("the issuer %s has a query or a fragment", shorten(issuer))
		}
		if err == nil {
			err = e.readServer(ctx, d, oauth.ServerMetadataURLs(u), issuer)
		}
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// useEndpoints uses the endpoints of the options.
func (d *discovery) useEndpoints(given Server, issuer string, server *url.URL) error {
	if given.AuthorizationURL == "" || given.TokenURL == "" {
		return errors.New("only one of the authorization URL and the token URL is configured: configure both")
	}
	if issuer == "" {
		issuer = httpwire.Origin(server)
	}
	return d.setServer(&oauth.ServerMetadata{
		Issuer: issuer, AuthorizationEndpoint: given.AuthorizationURL, TokenEndpoint: given.TokenURL, CodeChallengeMethods: []string{"S256"},
	}, nil)
}

// setServer sets the authorization server. raw is its metadata; nil means that m was made here.
func (d *discovery) setServer(m *oauth.ServerMetadata, raw []byte) (err error) {
	if raw == nil {
		raw, err = json.Marshal(m)
	}
	d.server, d.raw = m, raw
	return err
}

// readServer reads the metadata of an issuer from the first of the addresses that has it. An empty
// issuer accepts any.
func (e *explorer) readServer(ctx context.Context, d *discovery, urls []string, issuer string) error {
	var refused error
	for _, u := range urls {
		var m oauth.ServerMetadata
		raw, found, err := e.read(ctx, u, &m)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if err = checkServer(&m, issuer); err == nil {
			return d.setServer(&m, raw)
		}
		e.reject(err)
		if refused == nil {
			refused = fmt.Errorf("the metadata of the authorization server cannot be used: %w", err)
		}
	}
	if refused == nil {
		missing := fmt.Errorf("the authorization server %s %w", shorten(issuer), errNoMetadata)
		refused = &brokenRule{missing, "authorization-server-discovery: metadata of authorization servers", "MetadataURL"}
	}
	return refused
}

// checkServer validates the metadata of an issuer (RFC 8414, section 3.3).
func checkServer(m *oauth.ServerMetadata, issuer string) error {
	if issuer != "" && m.Issuer != issuer && !differsBySlash(m.Issuer, issuer) {
		return &brokenRule{fmt.Errorf("its issuer is %s, want %s", shorten(m.Issuer), shorten(issuer)), "RFC 8414, section 3.3", "MetadataURL"}
	}
	if m.Issuer == "" {
		return errors.New("it has no issuer")
	}
	if m.TokenEndpoint == "" {
		return errors.New("it has no token_endpoint")
	}
	for _, endpoint := range []string{m.TokenEndpoint, m.AuthorizationEndpoint, m.RegistrationEndpoint, m.RevocationEndpoint, m.DeviceAuthorizationEndpoint} {
		if endpoint == "" {
			continue
		}
		if _, err := checkSecure(endpoint); err != nil {
			return fmt.Errorf("an endpoint cannot be used: %w", err)
		}
	}
	return nil
}

// brokenRule is a rule that metadata breaks, and the field of Server that accepts it all the same.
type brokenRule struct {
	err           error
	rule, setting string
}

func (e *brokenRule) Error() string { return e.err.Error() + " (" + e.rule + ")" }

func (e *brokenRule) Unwrap() error { return e.err }

// differsBySlash is the tolerance issuer-slash: two issuers without a path are the same if one ends
// with "/". The issuer in the metadata is then compared with iss.
func differsBySlash(a, b string) bool {
	u, err := url.Parse(a)
	return err == nil && u.Host != "" && strings.Trim(u.Path, "/") == "" && strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// fallBack applies the rules of revision 2025-03-26: the MCP server is its own authorization
// server, with metadata at its origin or with the default endpoints.
func (e *explorer) fallBack(ctx context.Context, d *discovery) error {
	d.legacy = true
	origin := &url.URL{Scheme: e.t.url.Scheme, Host: e.t.url.Host}
	if err := e.readServer(ctx, d, oauth.ServerMetadataURLs(origin), origin.String()); !errors.Is(err, errNoMetadata) {
		return err
	}
	d.isGuess = true
	at := func(path string) string { return origin.String() + path }
	return d.setServer(&oauth.ServerMetadata{
		Issuer: origin.String(), AuthorizationEndpoint: at("/authorize"), TokenEndpoint: at("/token"), RegistrationEndpoint: at("/register"),
	}, nil)
}

// errNoMetadata is wrapped by the error for an authorization server without metadata.
var errNoMetadata = errors.New("has no metadata")

// read reads a JSON document. found is false if the address has no such document; the caller can
// try another address. An error means that the host cannot be reached.
func (e *explorer) read(ctx context.Context, address string, into any) (raw []byte, found bool, err error) {
	e.seen[address] = true
	a, err := e.t.fetcher.getDocument(ctx, address)
	if err != nil {
		e.tried = append(e.tried, Attempt{URL: address, Problem: err.Error()})
		return nil, false, fmt.Errorf("%s cannot be read: %w", shorten(address), err)
	}
	said := strconv.Itoa(a.status) + " " + http.StatusText(a.status)
	e.tried = append(e.tried, Attempt{URL: address, Answer: said})
	switch {
	case a.status != http.StatusOK:
		e.reject(errors.New("no document"))
	case !a.isJSON:
		e.reject(errors.New("not JSON"))
	case json.Unmarshal(a.body, into) != nil:
		e.reject(errors.New("JSON of another form"))
	default:
		return a.body, true, nil
	}
	return nil, false, nil
}

// reject records why the document of the last attempt is not used.
func (e *explorer) reject(err error) { e.tried[len(e.tried)-1].Problem = err.Error() }
