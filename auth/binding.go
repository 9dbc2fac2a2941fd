package auth

import "context"

// bindRecord returns the record for the authorization server that was found. Registrations and
// tokens of another one are never used there (client-registration: authorization server binding).
// A client that was registered by hand works at one server only, because dowel cannot register it
// again.
func (t *Transport) bindRecord(r *Record, d *discovery) (*Record, error) {
	issuer := d.server.Issuer
	fresh := &Record{Server: t.server, Account: t.opts.Account, Issuer: issuer}
	if r == nil {
		return fresh, nil
	}
	if bound := t.boundIssuer(r, issuer); bound != issuer && bound != "" && t.opts.Server.Issuer == "" {
		return nil, &DiscoveryError{
			Server: t.server, Tried: d.tried,
			Reason: "it now names the authorization server " + issuer + ", and the client " + t.opts.Client.ID + " belongs to " + bound +
				"; if the change is right, configure the new one as the issuer",
		}
	}
	if r.Issuer == issuer {
		return r, nil
	}
	fresh.Generation, fresh.Pending = r.Generation, r.Pending
	return fresh, nil
}

// boundIssuer returns the authorization server to which the client of the options belongs, or "" if
// none is known. It prefers a given one.
func (t *Transport) boundIssuer(r *Record, preferred string) (bound string) {
	for _, at := range []*Record{r, r.Pending} {
		if at == nil || !at.Registration.isConfigured() || at.Registration.ClientID != t.opts.Client.ID {
			continue
		}
		if at.Issuer == preferred {
			return preferred
		}
		bound = at.Issuer
	}
	return bound
}

// isConfigured reports whether the registration came from the options: a client that was registered
// by hand, or an assertion without a client.
func (r *Registration) isConfigured() bool {
	return !r.Dynamic && r.AuthMethod != "" && !isDocumentURL(r.ClientID)
}

// bindClient remembers the authorization server of a client with secrets before it gets them, so
// that a server which names one after the other collects them for none but the first.
func (t *Transport) bindClient(ctx context.Context, d *discovery, r *Record) error {
	c := t.opts.Client
	hasSecrets := t.opts.Assertion != nil || c.ID != "" && (c.Secret != "" || c.Key != nil)
	if !hasSecrets || t.opts.Server.Issuer != "" || t.boundIssuer(r, d.server.Issuer) != "" {
		return nil
	}
	bound := *r
	bound.Registration = Registration{AuthMethod: methodNone}
	if c.ID != "" {
		bound.Registration, _ = t.knownRegistration(d, r, false)
		bound.Registration.ClientSecret = ""
	}
	err := t.saveRegistration(ctx, &bound)
	r.Generation = bound.Generation
	return err
}

// binding returns the part of a record that a logout keeps, or nil.
func (r *Record) binding() *Record {
	for _, at := range []*Record{r.Pending, r} {
		if at != nil && at.Registration.isConfigured() {
			client := Registration{ClientID: at.Registration.ClientID, AuthMethod: at.Registration.AuthMethod}
			return &Record{Server: r.Server, Account: r.Account, Issuer: at.Issuer, Registration: client}
		}
	}
	return nil
}
