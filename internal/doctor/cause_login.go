package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// findRefusedLogin explains an error of the authorization of a request.
func findRefusedLogin(e *evidence) (finding, bool) {
	refusal, ok := errors.AsType[*httpwire.RefusalError](e.err)
	if !ok {
		return finding{}, false
	}
	summary, _, _ := strings.Cut(refusal.Error(), "\n") // the rest lists the requests that were tried
	var advised interface{ Advice() string }            // an error that knows what to do
	f := finding{step: stepLogin, summary: summary}
	switch {
	case refusal.NeedsLogin:
		f.advice = e.adviseLogin()
	case refusal.NoServer:
		f.advice = "Correct the oauth settings of its entry: dowel doctor shows the addresses that were asked, or give the server's token in an Authorization header."
	case refusal.WrongClient:
		f.advice = "Correct the client in the oauth settings of its entry: clientId, and clientSecret or privateKey."
	case errors.As(refusal.Err, &advised) && advised.Advice() != "":
		advice := advised.Advice()
		f.advice = strings.ToUpper(advice[:1]) + advice[1:] + "."
	default:
		f.advice = "See where its login is kept with dowel auth status."
	}
	return f, true
}

// adviseLogin names the command that logs in at the server.
func (e *evidence) adviseLogin() string {
	if e.server.Name == "" || strings.Contains(e.server.Name, "://") {
		return "Log in: dowel login --url " + e.shownAddress()
	}
	return fmt.Sprintf("Log in: dowel login %s", e.server.Name)
}

func (e *evidence) shownAddress() string {
	if e.url == nil {
		return "URL"
	}
	return shownURL(e.url)
}
