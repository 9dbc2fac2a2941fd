package doctor

import (
	"context"
	"errors"
	"iter"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/doctor"
)

// stepDiscovery is the name of the steps that show how the authorization server was looked for.
const stepDiscovery = "discovery"

// stepLogin is the name of the step that shows where the key of the user's logins is.
const stepLogin = "login"

// withLogin shows, after the steps of a server that the user is logged in at, where the key of the
// logins is: a keyring cannot be reached from everywhere.
func withLogin(ctx context.Context, f *factory.Factory, steps iter.Seq[doctor.Step], d hub.Definition) iter.Seq[doctor.Step] {
	login := configured.LoginOf(d.Options.HTTP.Client)
	if login == nil {
		return steps
	}
	return func(yield func(doctor.Step) bool) {
		for s := range steps {
			if !yield(s) {
				return
			}
		}
		place, err := f.DescribeLoginKey(ctx, login.Server(), login.Account())
		switch {
		case err != nil:
			yield(doctor.Step{Name: stepLogin, Status: doctor.Warning, Detail: "the key of your logins cannot be used: " + err.Error()})
		case place != "":
			yield(doctor.Step{Name: stepLogin, Status: doctor.OK, Detail: "you are logged in; the key of your logins is " + place})
		}
	}
}

// withDiscovery shows, before the step that fails for a login, each address that was asked for the
// authorization server.
func withDiscovery(ctx context.Context, steps iter.Seq[doctor.Step], d hub.Definition) iter.Seq[doctor.Step] {
	login := configured.LoginOf(d.Options.HTTP.Client)
	if login == nil {
		return steps
	}
	return func(yield func(doctor.Step) bool) {
		for s := range steps {
			if s.Status == doctor.Failed && isLoginFailure(s.Err) && !showDiscovery(ctx, login, yield) {
				return
			}
			if !yield(s) {
				return
			}
		}
	}
}

func isLoginFailure(err error) bool {
	_, needsLogin := errors.AsType[*auth.NeedsLogin](err)
	_, isUnknown := errors.AsType[*auth.DiscoveryError](err)
	return needsLogin || isUnknown
}

// showDiscovery makes one discovery, and returns false if the examination must stop.
func showDiscovery(ctx context.Context, login *configured.LoginTransport, yield func(doctor.Step) bool) bool {
	issuer, tried, err := login.Discover(ctx)
	for _, a := range tried {
		s := doctor.Step{Name: stepDiscovery, Status: doctor.OK, Detail: a.String()}
		if a.Problem != "" {
			s.Status = doctor.Skipped
		}
		if !yield(s) {
			return false
		}
	}
	s := doctor.Step{Name: stepDiscovery, Status: doctor.OK, Detail: "the authorization server is " + issuer}
	if failed, ok := errors.AsType[*auth.DiscoveryError](err); ok {
		s.Status, s.Detail, s.Advice = doctor.Warning, "no authorization server can be used: "+failed.Reason, adviseSetting(failed, login.RedirectURI())
	}
	return yield(s)
}

// adviseSetting names the key of the server's entry with which its authorization server would be
// used. redirectURI is for a client that the user registers.
func adviseSetting(failed *auth.DiscoveryError, redirectURI string) string {
	switch failed.Setting {
	case "Resource":
		return "If this is the server that you mean, set oauth.resource in its entry to the resource that it names."
	case "MetadataURL":
		return "If it is the right one, set oauth.metadataUrl in the server's entry to the address of its metadata, or oauth.authorizationUrl and oauth.tokenUrl."
	case "Client":
		return "Create a client there with the redirect URI " + redirectURI + ", and set oauth.clientId in the server's entry, with oauth.clientSecret if the client has one."
	case "AuthorizationURL":
		return "If you know its endpoints, set oauth.authorizationUrl and oauth.tokenUrl in the server's entry."
	case "AssumePKCE":
		return `If you know that it supports PKCE, set "assumePKCE": true in oauth of the server's entry.`
	}
	return "If you know it, set oauth.issuer or oauth.metadataUrl in the server's entry."
}
