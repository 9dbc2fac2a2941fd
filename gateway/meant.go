package gateway

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/near"
)

// maxMeant bounds the names that are compared: what is longer was not meant as a name.
const maxMeant = 128

// meant says which tool may have been meant by a name that there is not, so that a model can correct itself.
func (g *Gateway) meant(name string) string {
	if len(name) > maxMeant {
		return ""
	}
	best, least := "", max(3, len(name)/3)
	server, _, qualified := strings.Cut(name, "__")
	known := false
	for _, item := range g.hub.Catalog().Items(hub.Tool) {
		if !g.view.shows(item.Upstream.Name()) {
			continue
		}
		known = known || item.Upstream.Name() == server
		offered := g.view.called(item)
		if d := near.Distance(strings.ToLower(name), strings.ToLower(offered)); d < least {
			best, least = offered, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %s?", best)
	case qualified && !known && g.view.status():
		return fmt.Sprintf("; there is no server %s: %s tells which there are", server, StatusTool)
	}
	return ""
}
