package gateway

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/near"
)

// maxGuessed limits the length of a name that is compared with others.
const maxGuessed = 128

// maxListed limits the tools that an error lists.
const maxListed = 30

// suggestTool returns the end of an error message for an unknown tool: the tool that the model
// probably meant, or the tools of the server. It returns "" without a suggestion.
func (g *Gateway) suggestTool(name string) string {
	if len(name) > maxGuessed || !near.Guessable(name) {
		return ""
	}
	best, least := "", max(3, len(name)/3)
	server, qualified := g.serverOf(name)
	var tools []string // the tools of that server
	for _, item := range g.hub.Catalog().Items(catalog.Tool) {
		if !g.showsUpstream(item.Upstream.Name()) {
			continue
		}
		shown := g.shownName(item)
		if item.Upstream.Name() == server {
			tools = append(tools, shown)
		}
		if d := near.Distance(strings.ToLower(name), strings.ToLower(shown)); d < least {
			best, least = shown, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %s?", best)
	case qualified && g.showsAll():
		return "; " + g.describeMissingTool(server, tools)
	}
	return ""
}

// serverOf returns the server part of a qualified tool name in either form, and whether the name is
// qualified.
func (g *Gateway) serverOf(name string) (server string, qualified bool) {
	for _, u := range g.shownUpstreams() {
		if catalog.OwnsName(u.Name(), name) && len(u.Name()) > len(server) {
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

// describeMissingTool says why a server lacks a tool. tools are the tools that it has.
func (g *Gateway) describeMissingTool(server string, tools []string) string {
	u := g.hub.Upstream(server)
	if u == nil {
		return fmt.Sprintf("there is no server %s: %s tells which there are", server, statusToolName)
	}
	if s := u.State(); s.Status.Held() {
		verb := "is "
		if strings.HasPrefix(s.Status.String(), "needs ") {
			verb = ""
		}
		return fmt.Sprintf("the server %s %s%s: %s", server, verb, s.Status, describeState(s))
	}
	if len(tools) == 0 {
		return fmt.Sprintf("the server %s has no tools", server)
	}
	more := ""
	if len(tools) > maxListed {
		tools, more = tools[:maxListed], ", …"
	}
	return "its tools are " + strings.Join(tools, ", ") + more
}
