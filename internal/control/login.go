package control

import (
	"net/http"
)

// LoginPage is a page of an authorization server that the user must open to log in.
type LoginPage struct {
	URL string `json:"url"`
	// Port is where this machine waits for the browser afterwards. A browser on another machine
	// needs it forwarded.
	Port int `json:"port"`
}

// LoginEvent is an event of a login: a page to open, or the end. Error is empty if the user is
// logged in.
type LoginEvent struct {
	Kind string     `json:"k"` // page or end
	Page *LoginPage `json:"page,omitempty"`
	// Error is the text of the error that has ended the login.
	Error string `json:"error,omitzero"`
}

// serveLogin logs the user in at a server, and answers with the events, one JSON object a line. The
// login ends with the request.
func (d Running) serveLogin(w http.ResponseWriter, r *http.Request) {
	ctx, end := requestContext(r, d.Life)
	defer end()
	lines := newLineWriter(w)
	show := func(e LoginEvent) {
		if lines.writeLine(e) != nil {
			end()
		}
	}
	name := r.PathValue("name")
	err := d.record("servers/login", name, "", d.Controller.LogIn(ctx, name, func(p LoginPage) { show(LoginEvent{Kind: "page", Page: &p}) }))
	last := LoginEvent{Kind: "end"}
	if err != nil {
		last.Error = err.Error()
	}
	show(last)
}
