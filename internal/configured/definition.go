package configured

import (
	"context"
	"net/http"
	"strings"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// newDefinition returns the definition of a resolved server, which the hub starts. logins may be
// nil.
func newDefinition(d *config.Definition, logins auth.Store) hub.Definition {
	header := requestHeader(d)
	login, err := loginClient(d, logins)
	if err != nil {
		return heldDefinition(d.Server, hub.NeedsConfiguration, d.Mask(err.Error()))
	}
	return hub.Definition{
		Name: d.Server.Name, Origin: d.Mask(describeTarget(d.Spec)), Source: string(d.Server.Scope),
		Target: dialTarget(d, header, login), Fingerprint: d.Fingerprint(), Policy: d.Policy, Mask: d.Mask,
		Options: client.Options{
			Limits: client.Limits{Start: d.Start, Connect: d.Start, Install: d.Install},
			Wire:   client.Wire{SerializeAsks: d.Serialize, Revision: pinnedRevision(d.Revision)},
			HTTP:   client.HTTP{Header: header, Client: login},
		},
	}
}

// heldDefinition returns the definition of a server that the hub does not start.
func heldDefinition(s *config.Server, status hub.Status, reason string) hub.Definition {
	return hub.Definition{
		Name: s.Name, Origin: s.Mask(describeTarget(s.Spec)), Source: string(s.Scope), Mask: s.Mask,
		Hold: hub.Hold{Status: status, Reason: reason},
	}
}

// dialTarget returns the target of [client.Dial].
func dialTarget(d *config.Definition, header func(context.Context) (http.Header, error), login *http.Client) any {
	switch d.Kind {
	case config.Stdio:
		return stdio.Command{Path: d.Command, Args: d.Args, Env: d.Env, Dir: d.Dir, KeepDetached: d.KeepDetached}
	case config.SSE:
		return sse.URL{URL: d.URL, Header: header, Client: login}
	case config.HTTP:
		return streamable.URL{URL: d.URL, Header: header, Client: login}
	case config.WebSocket:
		return websocket.URL{URL: d.URL, Header: header, Client: login}
	}
	return d.URL
}

// describeTarget returns the command line or the URL of an entry as users read it. The caller
// masks the secrets that cannot be told by their form.
func describeTarget(s config.Spec) string {
	if s.Kind == config.Stdio || s.Command != "" {
		return strings.Join(append([]string{s.Command}, secretmask.Args(s.Args)...), " ")
	}
	return s.URL
}

// pinnedRevision returns the revision that a configuration pins, or "" if the client finds it out.
func pinnedRevision(revision string) mcp.Revision {
	switch revision {
	case "legacy":
		return mcp.LatestLegacyRevision
	case "modern":
		return mcp.LatestRevision
	case "auto":
		return ""
	}
	return mcp.Revision(revision)
}
