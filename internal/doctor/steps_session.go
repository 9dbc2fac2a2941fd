package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// examineOther dials a target that is neither a command nor a URL.
func (w *examination) examineOther() {
	d := w.startDial(w.server.Target)
	defer d.closeDial()
	<-d.done
	if d.err != nil {
		w.reportFailure(d.err)
		return
	}
	if w.reportHandshake(d.client) {
		w.inspectServer(d.client)
	}
}

// reportHandshake reports the revision that was agreed on.
func (w *examination) reportHandshake(c *client.Client) bool {
	s := Step{Name: stepHandshake, Status: OK, Detail: describeRevision(c.Server().Revision)}
	if !w.startedAt.IsZero() {
		s.Took = time.Since(w.startedAt)
	}
	if w.command != nil && w.wasRestarted.Load() {
		s.Detail += "; the server ended when it was asked for its era, and was started again"
	}
	if w.network.usesHTTPSSE() {
		s.Detail += ", over the older HTTP+SSE"
	}
	return w.reportStep(s)
}

func describeRevision(r mcp.Revision) string {
	switch {
	case r == "":
		return "the server does not say which revision it speaks"
	case r.Modern():
		return "revision " + string(r) + ", modern"
	}
	return "revision " + string(r) + ", legacy"
}

// inspectServer reports the server's identity and lists, and closes the connection.
func (w *examination) inspectServer(c *client.Client) {
	if w.reportServer(c) && w.countLists(c) {
		w.endConnection(c)
	}
}

// reportServer reports the server's name and version.
func (w *examination) reportServer(c *client.Client) bool {
	info := c.Server().Info
	if info.Name == "" {
		return w.reportStep(Step{Name: stepServer, Status: Warning, Detail: "the server does not give its name", Advice: "Tell the server's author that its serverInfo has no name."})
	}
	says := strings.TrimSpace(info.Name + " " + info.Version)
	if info.Title != "" && info.Title != info.Name {
		says = fmt.Sprintf("%s (%s)", info.Title, says)
	}
	return w.reportStep(Step{Name: stepServer, Status: OK, Detail: stripControls(says)})
}

// listTimeout bounds each list if the options set no limit.
const listTimeout = 30 * time.Second

// countLists counts the tools, resources and prompts that the server lists.
func (w *examination) countLists(c *client.Client) bool {
	o := client.CallOptions{NoCache: true}
	if w.options.Limits.Total == 0 {
		o.Limits.Total = listTimeout
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
		counts = append(counts, formatCount(n, one))
	}
	offers := c.Server().Capabilities
	count(offers.Tools != nil, "tool", func() (int, error) { return countAll(client.All(c.Tools(w.ctx, o))) })
	count(offers.Resources != nil, "resource", func() (int, error) { return countAll(client.All(c.Resources(w.ctx, o))) })
	count(offers.Prompts != nil, "prompt", func() (int, error) { return countAll(client.All(c.Prompts(w.ctx, o))) })
	if s.Detail = strings.Join(counts, ", "); s.Detail == "" {
		s.Status, s.Detail = Warning, "the server declares neither tools nor resources nor prompts"
		s.Advice = "Check that the arguments and variables enable the features of the server."
	}
	return w.reportStep(s)
}

func countAll[T any](all []T, err error) (int, error) { return len(all), err }

func formatCount(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// endConnection closes the connection and reports how the process took it.
func (w *examination) endConnection(c *client.Client) {
	child := stdio.ChildOf(c.Transport())
	s := Step{Name: stepEnd, Status: OK, Detail: "the connection is closed"}
	if err := c.Close(); err != nil {
		s.Status, s.Detail, s.Advice = Warning, err.Error(), "End the process by hand: it ignores signals."
	} else if child != nil {
		if s.Detail, s.Advice = describeExit(child); s.Advice != "" {
			s.Status = Warning
		}
	}
	w.reportStep(s)
}
