package gateway_test

import (
	"regexp"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

// impossibility is a feature that does not work for some pairs.
type impossibility struct {
	features []string
	in       func(p *pair) bool
	how      *regexp.Regexp // the feature fails there
	page     string         // of the specification, that makes it so
}

func olderThan(r mcp.Revision) func(*pair) bool { return func(p *pair) bool { return p.older < r } }

// impossible lists all features that do not work for some pair, and the error that the client gets.
var impossible = []impossibility{
	{
		[]string{"call: audio"}, olderThan(mcp.Revision20250326), regexp.MustCompile(`^text instead: .*audio`),
		"2025-03-26/changelog: audio data is new",
	}, {
		[]string{"call: structured object"}, olderThan(mcp.Revision20250618), regexp.MustCompile(`^text alone: \{.*Saturn`),
		"2025-06-18/changelog: structured tool output is new",
	}, {
		[]string{"call: structured array"}, olderThan(mcp.Revision20260728), regexp.MustCompile(`^text alone: \[.*Saturn`),
		"2026-07-28/changelog: structuredContent may be any JSON value; before, an object",
	}, {
		[]string{"call: resource link"}, olderThan(mcp.Revision20250618), regexp.MustCompile(`^text instead: .*test://static-text`),
		"2025-06-18/changelog: resource links in tool results are new",
	}, {
		elicitations, func(p *pair) bool { return p.up.before(mcp.Revision20250618) }, regexp.MustCompile(`does not support.*elicitation`),
		"2025-06-18/changelog: elicitation is new; the older upstream has nothing to ask with",
	}, {
		elicitations, func(p *pair) bool { return p.down.before(mcp.Revision20250618) }, regexp.MustCompile(`does not support.*elicitation`),
		"2025-06-18/changelog: elicitation is new; the older client cannot declare it",
	}, {
		[]string{"elicit: url"}, olderThan(mcp.Revision20251125), regexp.MustCompile(`does not support.*elicitation`),
		"2025-11-25/changelog: URL mode elicitation is new",
	}, {
		[]string{"sample: with tools"}, olderThan(mcp.Revision20251125), regexp.MustCompile(`does not support.*sampling.*tools`),
		"2025-11-25/changelog: tools in sampling are new",
	}, {
		[]string{"visits: -32042"}, func(p *pair) bool { return p.up.revision != mcp.Revision20251125 }, regexp.MustCompile(`visit a page first .-32603`),
		"2025-11-25/client/elicitation: URL mode required error; no other revision has -32042",
	}, {
		[]string{"visits: -32042"}, func(p *pair) bool { return p.down.before(mcp.Revision20251125) }, regexp.MustCompile(`does not support.*elicitation`),
		"2025-11-25/changelog: URL mode elicitation is new; the older client cannot be asked",
	}, {
		[]string{"capability: of the caller"}, func(p *pair) bool { return !p.up.revision.Modern() }, regexp.MustCompile(`^The client has a model`),
		"2025-11-25/basic/lifecycle: capabilities are negotiated once for a session, which all callers share",
	}, {
		[]string{"cache: hints"}, olderThan(mcp.Revision20260728), regexp.MustCompile(`^stale at once, and private$`),
		"2026-07-28/changelog: caching hints are new",
	}, {
		[]string{"progress: message"}, olderThan(mcp.Revision20250326), regexp.MustCompile(`^without words$`),
		"2025-03-26/changelog: the message of progress is new",
	},
}

// usage counts the uses of each row of impossible, since a row without a use is wrong.
type usage struct {
	mu sync.Mutex
	of map[string]int
}

func (u *usage) note(row int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of[impossible[row].page]++
}

func (u *usage) check(t *testing.T) {
	pairs := len(ends()) * len(ends())
	if t.Failed() || testing.Short() {
		return
	}
	for _, row := range impossible {
		if n := u.of[row.page]; n == 0 || n >= pairs*len(row.features) {
			t.Errorf("%d pairs need %v, and there are %d: %s", n, row.features, pairs, row.page)
		}
	}
}
