package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// talk dials a target that there is nothing to know of.
func (w *walk) talk() {
	d := w.dial(w.p.Target)
	defer d.end()
	<-d.done
	if d.err != nil {
		w.fail(d.err)
		return
	}
	if w.greeted(d.client) {
		w.know(d.client)
	}
}

// greeted says what was agreed on.
func (w *walk) greeted(c *client.Client) bool {
	s := Step{Name: stepHandshake, Status: OK, Detail: spoken(c.Revision())}
	if !w.running.IsZero() {
		s.Took = time.Since(w.running)
	}
	if w.command != nil && w.again.Load() {
		s.Detail += "; the server ended when it was asked for its era, and was started again"
	}
	if w.network.older() {
		s.Detail += ", over the older HTTP+SSE"
	}
	return w.report(s)
}

func spoken(r mcp.Revision) string {
	switch {
	case r == "":
		return "the server does not say which revision it speaks"
	case r.Modern():
		return "revision " + string(r) + ", modern"
	}
	return "revision " + string(r) + ", legacy"
}

// know asks the server what it is and offers, and ends the connection.
func (w *walk) know(c *client.Client) {
	if w.introduced(c) && w.listed(c) {
		w.close(c)
	}
}

func (w *walk) introduced(c *client.Client) bool {
	info := c.ServerInfo()
	if info.Name == "" {
		return w.report(Step{Name: stepServer, Status: Warning, Detail: "it does not say what it is", Advice: "Tell the server's author that its serverInfo has no name."})
	}
	says := strings.TrimSpace(info.Name + " " + info.Version)
	if info.Title != "" && info.Title != info.Name {
		says = fmt.Sprintf("%s (%s)", info.Title, says)
	}
	return w.report(Step{Name: stepServer, Status: OK, Detail: clean(says)})
}

// patience bounds one list where the options do not.
const patience = 30 * time.Second

// listed counts what the server offers.
func (w *walk) listed(c *client.Client) bool {
	o := client.CallOptions{NoCache: true}
	if w.options.Limits.Total == 0 {
		o.Limits.Total = patience
	}
	s := Step{Name: stepLists, Status: OK}
	var counts []string
	count := func(declared bool, one string, list func() (int, error)) {
		if !declared {
			return
		}
		n, err := list()
		if err != nil {
			s.Status = Warning
			counts = append(counts, fmt.Sprintf("no list of %ss: %v", one, err))
			s.Advice = "Tell the server's author that it declares " + one + "s and does not list them, or update the server."
			return
		}
		counts = append(counts, plural(n, one))
	}
	offers := c.Capabilities()
	count(offers.Tools != nil, "tool", func() (int, error) { return length(client.All(c.Tools(w.ctx, o))) })
	count(offers.Resources != nil, "resource", func() (int, error) { return length(client.All(c.Resources(w.ctx, o))) })
	count(offers.Prompts != nil, "prompt", func() (int, error) { return length(client.All(c.Prompts(w.ctx, o))) })
	if s.Detail = strings.Join(counts, ", "); s.Detail == "" {
		s.Status, s.Detail = Warning, "it declares neither tools nor resources nor prompts"
		s.Advice = "Check that the arguments and variables switch on what the server has to offer."
	}
	return w.report(s)
}

func length[T any](all []T, err error) (int, error) { return len(all), err }

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func (w *walk) close(c *client.Client) {
	child := stdio.ChildOf(c.Transport())
	s := Step{Name: stepEnd, Status: OK, Detail: "the connection is closed"}
	if err := c.Close(); err != nil {
		s.Status, s.Detail, s.Advice = Warning, err.Error(), "End the process by hand, for it does not obey."
	} else if child != nil {
		if s.Detail, s.Advice = ended(child); s.Advice != "" {
			s.Status = Warning
		}
	}
	w.report(s)
}
