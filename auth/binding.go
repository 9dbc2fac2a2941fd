package auth

import "context"

// bindRecord returns the record to use with the authorization server in d: r if r belongs to that
// server, else an empty record, because registrations and tokens of one authorization server must
// never be sent to another (specification, client-registration: authorization server binding). If
// the client was registered by hand at another server, bindRecord returns an error: dowel cannot
// register it again.
func (t *Transport) bindRecord(r *Record, d *discovery) (*Record, error) {
	issuer := d.server.Issuer
	fresh := &Record{Server: t.server, Account: t.opts.Account, Issuer: issuer}
	if r == nil {
		return fresh, nil
	}
	if bound := t.boundIssuer(r, issuer); bound != issuer && bound != "" && t.opts.Server.Issuer == "" {
		return nil, &DiscoveryError{
			Server: t.server, tried: d.tried,
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

// boundIssuer returns the authorization server to which r binds the client of the options, or "" if
// it binds it to none. If r and r.Pending bind it to two servers, preferred is returned if it is
// one of them.
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

// bindClient stores the authorization server of a client with secrets before the first secret is
// sent there. Otherwise an MCP server could name several authorization servers in turn, and each of
// them would receive the secrets.
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

// binding returns a record that only binds a configured client to its authorization server, or nil
// if r has no such client. A logout keeps it.
func (r *Record) binding() *Record {
	for _, at := range []*Record{r.Pending, r} {
		if at != nil && at.Registration.isConfigured() {
			client := Registration{ClientID: at.Registration.ClientID, AuthMethod: at.Registration.AuthMethod}
			return &Record{Server: r.Server, Account: r.Account, Issuer: at.Issuer, Registration: client}
		}
	}
	return nil
}
