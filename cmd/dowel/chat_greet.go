package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/urlmask"
)

// greet tells what was assembled, and what becomes of servers that are starting. model describes the one at the beginning: that of
// the conversation is the goroutine's that reads.
func (c *chat) greet(it *assembled, model string) {
	c.show.note("model %s; /model changes it", model)
	told := map[string]bool{}
	for settled := false; ; {
		servers, err := it.servers(c.ctx)
		if err != nil {
			return // calls tell
		}
		ready, missing, starting := sortServers(servers)
		missing = slices.DeleteFunc(missing, func(s serverLine) bool { return told[s.Name] })
		for _, s := range missing {
			told[s.Name] = true
		}
		c.app.tellMissing(missing)
		if settled {
			c.show.note("servers: %s", cmp.Or(strings.Join(ready, ", "), "none is ready"))
			return
		}
		settled = !starting // what they offer is sure to be known when they are asked once more
		select {
		case <-time.After(settlePause):
		case <-c.ctx.Done():
			return
		}
	}
}

// sortServers tells those that are ready, and what they offer, from those whose tools are missing.
func sortServers(servers []serverLine) (ready []string, missing []serverLine, starting bool) {
	for _, s := range servers {
		switch {
		case s.Status == hub.Starting && s.Attempt == 0:
			starting = true
		case s.Status == hub.Ready:
			ready = append(ready, fmt.Sprintf("%s (%s)", line(s.Name), counted(s.Tools, "tool")))
		default:
			missing = append(missing, s)
		}
	}
	return ready, missing, starting
}

func describeModel(m chosenModel) string {
	text := line(m.label())
	var about []string
	if m.Name != "" && m.Name != m.Model {
		about = append(about, line(m.Model))
	}
	about = append(about, line(m.Provider))
	if m.URL != "" {
		about = append(about, "at "+line(urlmask.URL(m.URL)))
	}
	return text + " (" + strings.Join(about, ", ") + ")"
}
