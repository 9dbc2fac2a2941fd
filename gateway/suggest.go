package gateway

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/near"
)

// maxGuessed bounds the names that are compared: what is longer was not meant as a name.
const maxGuessed = 128

// maxListed bounds the tools that are named to a model.
const maxListed = 30

// suggestTool says which tool may have been meant by a name that there is not, so that a model can correct itself.
func (g *Gateway) suggestTool(name string) string {
	if len(name) > maxGuessed || !near.Guessable(name) {
		return ""
	}
	best, least := "", max(3, len(name)/3)
	server, qualified := g.serverOf(name)
	var its []string // the tools of that server
	for _, item := range g.hub.Catalog().Items(hub.Tool) {
		if !g.showsUpstream(item.Upstream.Name()) {
			continue
		}
		shown := g.shownName(item)
		if item.Upstream.Name() == server {
			its = append(its, shown)
		}
		if d := near.Distance(strings.ToLower(name), strings.ToLower(shown)); d < least {
			best, least = shown, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %s?", best)
	case qualified && g.showsAll():
		return "; " + g.describeMissingTool(server, its)
	}
	return ""
}

// serverOf returns the server's name in a qualified name of a tool, in either form.
func (g *Gateway) serverOf(name string) (server string, qualified bool) {
	for _, u := range g.shownUpstreams() {
		if m := (hub.Missing{Upstream: u.Name()}); m.Owns(name) && len(u.Name()) > len(server) {
			server = u.Name()
		}
	}
	if server != "" {
		return server, true
	}
	for _, separator := range []string{"__", "."} {
		if server, _, ok := strings.Cut(name, separator); ok && server != "" {
			return server, true
		}
	}
	return "", false
}

// describeMissingTool says why a server does not have a tool, and which it has.
func (g *Gateway) describeMissingTool(server string, its []string) string {
	u := g.hub.Upstream(server)
	if u == nil {
		return fmt.Sprintf("there is no server %s: %s tells which there are", server, StatusTool)
	}
	if s := u.State(); s.Status.Held() {
		return fmt.Sprintf("the server %s is %s: %s", server, s.Status, describeState(s))
	}
	if len(its) == 0 {
		return fmt.Sprintf("the server %s has no tools", server)
	}
	more := ""
	if len(its) > maxListed {
		its, more = its[:maxListed], ", …"
	}
	return "its tools are " + strings.Join(its, ", ") + more
}
