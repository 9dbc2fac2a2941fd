package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// errNoRefresh says that the tokens of a record cannot be refreshed, and a login is needed.
var errNoRefresh = errors.New("the login cannot be refreshed")

// errUnchanged leaves a record as it is.
var errUnchanged = errors.New("unchanged")

// refreshTimeout bounds a refresh, with the wait for the lock of the record.
const refreshTimeout = 60 * time.Second

// refresh replaces the tokens of the record. A refresh token works once, and a second use may
// revoke the whole login. So the record is locked and read again first; another process may have
// been faster. The context of the request does not end a refresh that has begun: its answer would
// be lost.
func (t *Transport) refresh(ctx context.Context, n *need, seen *Record) (*credential, error) {
	if seen == nil || seen.RefreshToken == "" {
		return nil, errNoRefresh
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	ctx = oauth.WithRecordLock(ctx)
	var latest *Record
	var refused error
	n.result = refreshed
	err := t.opts.Store.Update(ctx, t.key, func(r *Record) (*Record, error) {
		latest = r
		if r == nil || r.RefreshToken == "" {
			return nil, errNoRefresh
		}
		if c, err := newCredential(r); err == nil && c.isNewer(n.failed) && !c.isExpired() {
			n.result = adopted
			return nil, errUnchanged
		}
		next, err := t.refreshRecord(ctx, r)
		if refused = err; err != nil && !isFinalRefusal(err) {
			return nil, err // the tokens may still be good
		}
		switch isValid := time.Now().Before(r.ExpiresAt); {
		case err != nil && n.kind == aheadOfTime && isValid:
			next.RefreshToken = ""
		case err != nil:
			next.dropRefused(err)
		}
		latest = next
		return next, nil
	})
	switch {
	case errors.Is(err, errUnchanged):
		return t.adoptRecord(latest)
	case err != nil:
		return nil, err
	case refused != nil:
		n.notFresh = refused
		_, err = t.adoptRecord(latest) // an access token that is still valid, or none
		return nil, errors.Join(errNoRefresh, err)
	}
	return t.adoptRecord(latest)
}

// isFinalRefusal reports whether a refused refresh cannot succeed later.
func isFinalRefusal(err error) bool {
	return refusedAs(err, "invalid_grant", "invalid_client", "unauthorized_client")
}

// dropRefused removes the tokens, and a dynamic registration that the server has forgotten.
func (r *Record) dropRefused(err error) {
	r.dropTokens()
	if r.Registration.Dynamic && !refusedAs(err, "invalid_grant") {
		r.Registration = Registration{}
	}
}

// refreshRecord asks for new tokens. It returns a changed copy of the record, also with an error.
func (t *Transport) refreshRecord(ctx context.Context, r *Record) (*Record, error) {
	next := r.clone()
	d, err := t.storedServer(ctx, next)
	if err != nil {
		return next, err
	}
	var key *oauth.DPoPKey
	if len(r.DPoPKey) > 0 {
		if key, err = oauth.ParseDPoPKey(r.DPoPKey); err != nil {
			return next, err
		}
	}
	var scopes []string
	if d.quirks.refreshScope {
		scopes = r.Requested
	}
	form := t.newForm(d, grantRefresh, scopes)
	form.Set("refresh_token", r.RefreshToken)
	client := r.Registration
	if c := t.opts.Client; c.ID != "" && c.ID == client.ClientID { // the secret may have been replaced
		client, _ = t.knownRegistration(d, r, false)
		next.Registration = client
	}
	request := tokenRequest{endpoint: d.server.TokenEndpoint, issuer: r.Issuer, form: form, client: client, dpop: key}
	a, err := t.requestToken(ctx, request)
	if refusedAs(err, "invalid_request", "invalid_scope") && len(r.Requested) > 0 && !form.Has("scope") {
		form.Set("scope", joinScopes(r.Requested)) // the refresh token has not been used
		a, err = t.requestToken(ctx, request)
	}
	if err != nil {
		return next, err
	}
	granted := next.Granted
	next.setTokens(a, r.Requested, time.Now())
	if a.scopes == nil {
		next.Granted = granted
	}
	if next.TokenType == oauth.SchemeDPoP && key == nil {
		return next, errors.New("the authorization server issued a DPoP token, but none was asked for")
	}
	return next, nil
}

// metadataAge is how long the metadata of an authorization server is used.
const metadataAge = time.Hour

// storedServer returns the authorization server of a record. It reads old metadata again, and keeps
// it if that is not possible.
func (t *Transport) storedServer(ctx context.Context, r *Record) (*discovery, error) {
	var m oauth.ServerMetadata
	if err := json.Unmarshal(r.Metadata, &m); err != nil || m.TokenEndpoint == "" || m.Issuer != r.Issuer {
		return nil, fmt.Errorf("the stored metadata of %s cannot be read: log in again", r.Issuer)
	}
	d := &discovery{server: &m, raw: r.Metadata, resource: r.Resource, quirks: quirksOf(r.Issuer)}
	if given := t.opts.Server; time.Since(r.MetadataTime) < metadataAge || given.TokenURL != "" || given.MetadataURL != "" {
		return d, nil
	}
	issuer, err := checkSecure(r.Issuer)
	if err != nil {
		return d, nil
	}
	ctx, cancel := oauth.WhileLocked(ctx)
	defer cancel()
	e := &explorer{t: t, seen: map[string]bool{}}
	fresh := &discovery{}
	if err := e.readServer(ctx, fresh, oauth.ServerMetadataURLs(issuer), r.Issuer); err == nil && fresh.server.Issuer == r.Issuer {
		d.server, d.raw = fresh.server, fresh.raw
		r.Metadata, r.MetadataTime = fresh.raw, time.Now()
	}
	return d, nil
}
