package auth

import (
	"fmt"
	"strings"
)

// NeedsLogin says that a request needs a user who logs in. Requests return it if there is no
// [Options.Login], and if the login failed or was refused.
type NeedsLogin struct {
	Server string // URL of the MCP server
	URL    string // where the user can log in; empty if a program must begin the login
	Reason string // why the stored login, if any, was not enough
	Err    error  // the failure of the login; may be nil
}

func (e *NeedsLogin) Error() string {
	text := e.Server + " needs a login"
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.URL != "" {
		text += "; open " + e.URL
	}
	return text
}

func (e *NeedsLogin) Unwrap() error { return e.Err }

// ScopeNeeded says that the server refuses an operation because the token lacks scopes, and that
// asking for them did not help or was not possible.
type ScopeNeeded struct {
	Server    string
	Operation string   // the method, with the name of the tool, prompt or resource
	Scopes    []string // which the operation needs
	Granted   []string // which the token has
	Reason    string   // why the scopes could not be had
}

func (e *ScopeNeeded) Error() string {
	text := fmt.Sprintf("%s refuses %s: it needs the scopes %q, and the login has %q", e.Server, e.Operation,
		strings.Join(e.Scopes, " "), strings.Join(e.Granted, " "))
	if e.Reason != "" {
		text += "; " + e.Reason
	}
	return text
}

// DiscoveryError says that no authorization server of an MCP server was found, or none that may be
// used.
type DiscoveryError struct {
	Server string
	Reason string // with the rule that a document breaks
	// Setting is the field of [Server] with which it would be used, such as "Resource", or "Client"
	// for a client that must be registered by hand ([Options]); empty if no field would help.
	Setting string
	tried   []Attempt // in their order
}

// Attempt is one request of a discovery.
type Attempt struct {
	URL     string
	Answer  string // the status, or the error of the request
	Problem string // why the document was not used; empty if it was
}

func (e *DiscoveryError) Error() string {
	text := fmt.Sprintf("cannot find the authorization server of %s: %s", e.Server, e.Reason)
	for _, a := range e.tried {
		text += "\n  " + a.String()
	}
	return text
}

// String describes the attempt in a line.
func (a Attempt) String() string {
	if a.Problem == "" {
		return a.URL + ": " + a.Answer
	}
	return a.URL + ": " + a.Answer + ", not used: " + a.Problem
}

// TokenError is a refusal of an authorization server: of the token endpoint, of the registration
// endpoint, or in a redirect (RFC 6749, sections 4.1.2.1 and 5.2).
type TokenError struct {
	Endpoint    string // URL of the endpoint
	Status      int    // the HTTP status; 0 in a redirect
	Code        string // such as "invalid_grant"; empty if the answer has another form
	Description string // of the server, or the beginning of its answer
}

func (e *TokenError) Error() string {
	text := e.Endpoint + " refuses"
	if e.Status != 0 {
		text = fmt.Sprintf("%s answers with status %d", e.Endpoint, e.Status)
	}
	if e.Code != "" {
		text += ": " + e.Code
	}
	if e.Description != "" {
		text += ": " + e.Description
	}
	return text
}
