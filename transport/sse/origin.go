package sse

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// resolveEndpoint returns the endpoint in the server's event, resolved against the URL of the
// stream. It must have the same origin: no other server may receive the client's messages and
// credentials.
func resolveEndpoint(stream *url.URL, told string) (*url.URL, error) {
	ref, err := url.Parse(strings.TrimSpace(told))
	if err != nil || told == "" {
		const shown = 100
		return nil, fmt.Errorf("the server's endpoint event holds no URL: %.*q", shown, told)
	}
	to := stream.ResolveReference(ref)
	if !httpwire.SameOrigin(stream, to) {
		return nil, fmt.Errorf("the server's endpoint event points to another origin: %s, where the stream is at %s", httpwire.Origin(to), httpwire.Origin(stream))
	}
	to.User = stream.User
	return to, nil
}
