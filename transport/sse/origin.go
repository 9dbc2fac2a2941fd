package sse

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// resolveEndpoint returns the endpoint that a server has told, relative to the URL of its stream. Another origin must not get what
// is meant for this one.
func resolveEndpoint(stream *url.URL, told string) (*url.URL, error) {
	ref, err := url.Parse(strings.TrimSpace(told))
	if err != nil || told == "" {
		const shown = 100
		return nil, fmt.Errorf("the server's endpoint event holds no URL: %.*q", shown, told)
	}
	to := stream.ResolveReference(ref)
	if !overhttp.SameOrigin(stream, to) {
		return nil, fmt.Errorf("the server's endpoint event points to another origin: %s, where the stream is at %s", overhttp.Origin(to), overhttp.Origin(stream))
	}
	to.User = stream.User
	return to, nil
}
