package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
)

// showStartup shows the model and the servers, and waits for servers that are still starting. model
// describes the first model: c.runtime.Model belongs to the goroutine of runLoop, which may change
// it meanwhile.
func (c *conversation) showStartup(rt *agentcmd.Runtime, model string) {
	c.view.Note("model %s; /model changes it", model)
	if paths := rt.InstructionPaths(); len(paths) > 0 {
		c.view.Note("instructions for the model: %s", term.Line(strings.Join(paths, ", ")))
	}
	reported := map[string]bool{}
	for settled := false; ; {
		servers, err := rt.Servers(c.ctx)
		if err != nil {
			return // the next call of a tool reports the error
		}
		c.view.Servers(servers)
		ready, missing, starting := groupServers(servers)
		missing = slices.DeleteFunc(missing, func(s agentcmd.Server) bool { return reported[s.Name] })
		for _, s := range missing {
			reported[s.Name] = true
		}
		agentcmd.WarnMissing(c.app, missing)
		if settled {
			c.view.Note("servers: %s", cmp.Or(strings.Join(ready, ", "), "none is ready"))
			return
		}
		settled = !starting // one more round: the lists of tools are complete then
		select {
		case <-time.After(agentcmd.SettlePause):
		case <-c.ctx.Done():
			return
		}
	}
}

// startWait is how long the first message waits for servers that are still starting: their tools
// are missing in it.
const startWait = 5 * time.Second

// awaitServers waits before the first message for servers that are starting for the first time, and
// shows for which. It returns early if ctx ends.
func (c *conversation) awaitServers(ctx context.Context, rt *agentcmd.Runtime) {
	if c.awaitedServers || !c.isInteractive() {
		return // without a terminal, the runtime has waited for them
	}
	c.awaitedServers = true
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	defer c.view.Working("")
	show := func(names string) { c.view.Working("waiting for " + names + " to start …") }
	_, _ = agentcmd.AwaitFirstStarts(ctx, rt.Servers, show) // the next call of a tool reports an error
}

// groupServers describes the ready servers, returns the servers without tools, and reports whether
// a server is still starting for the first time.
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

// describeModel describes a model for the user: its label, provider and URL. Secrets in the URL are
// masked.
func describeModel(m modelregistry.Choice) string {
	text := term.Line(m.Label())
	var about []string
	if m.Name != "" && m.Name != m.Model {
		about = append(about, term.Line(m.Model))
	}
	about = append(about, term.Line(m.Provider))
	if m.URL != "" {
		about = append(about, "at "+term.Line(secretmask.URL(m.URL)))
	}
	return text + " (" + strings.Join(about, ", ") + ")"
}
