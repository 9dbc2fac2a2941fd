package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/urlmask"
)

// showStartup tells what was assembled, and what becomes of servers that are starting. model describes the one at the beginning: that of
// the conversation is the goroutine's that reads.
func (c *conversation) showStartup(it *agentcmd.Runtime, model string) {
	c.view.Note("model %s; /model changes it", model)
	told := map[string]bool{}
	for settled := false; ; {
		servers, err := it.Servers(c.ctx)
		if err != nil {
			return // calls tell
		}
		ready, missing, starting := groupServers(servers)
		missing = slices.DeleteFunc(missing, func(s agentcmd.Server) bool { return told[s.Name] })
		for _, s := range missing {
			told[s.Name] = true
		}
		agentcmd.WarnMissing(c.app, missing)
		if settled {
			c.view.Note("servers: %s", cmp.Or(strings.Join(ready, ", "), "none is ready"))
			return
		}
		settled = !starting // what they offer is sure to be known when they are asked once more
		select {
		case <-time.After(agentcmd.SettlePause):
		case <-c.ctx.Done():
			return
		}
	}
}

// groupServers tells those that are ready, and what they offer, from those whose tools are missing.
func groupServers(servers []agentcmd.Server) (ready []string, missing []agentcmd.Server, starting bool) {
	for _, s := range servers {
		switch {
		case s.Status == hub.Starting && s.Attempt == 0:
			starting = true
		case s.Status == hub.Ready:
			ready = append(ready, fmt.Sprintf("%s (%s)", term.Line(s.Name), display.Count(s.Tools, "tool")))
		default:
			missing = append(missing, s)
		}
	}
	return ready, missing, starting
}

func describeModel(m modelregistry.Choice) string {
	text := term.Line(m.Label())
	var about []string
	if m.Name != "" && m.Name != m.Model {
		about = append(about, term.Line(m.Model))
	}
	about = append(about, term.Line(m.Provider))
	if m.URL != "" {
		about = append(about, "at "+term.Line(urlmask.URL(m.URL)))
	}
	return text + " (" + strings.Join(about, ", ") + ")"
}
