package transcripts

import (
	"path"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	oldest       = mcp.Revision20241105
	batching     = mcp.Revision20250326
	latestLegacy = mcp.Revision20251125
	latest       = mcp.Revision20260728
)

// must lists the outcomes of methods that the transcripts must show, in the revisions from from to
// to.
var must = []struct {
	from, to         mcp.Revision
	method, outcomes string // separated by |
}{
	// in every revision
	{oldest, latest, "tools/list", "ok|ok, next page|-32602|-32601"},
	{oldest, latest, "prompts/list", "ok|ok, next page|-32602|-32601"},
	{oldest, latest, "resources/list", "ok|ok, next page|-32602|-32601"},
	{oldest, latest, "resources/templates/list", "ok|ok, next page|-32602|-32601"},
	{oldest, latest, "tools/call", "ok|tool error|cancelled|-32601|-32602|-32603|7"},
	{oldest, latest, "prompts/get", "ok|-32601|-32602|-32603"},
	{oldest, latest, "resources/read", "ok|-32601|-32602|-32603"},
	{oldest, latest, "completion/complete", "ok|-32601|-32602|-32603"},
	{oldest, latest, "unknown/method", "-32601"},
	{oldest, latest, "roots/list", "-32601"},
	{oldest, latest, "sampling/createMessage", "-32601"},
	{oldest, latest, "elicitation/create", "-32601"},
	{oldest, latest, "no message", "-32600"},
	{oldest, latest, "notifications/cancelled", "taken|sent"},
	{oldest, latest, "notifications/unknown", "taken"},
	{oldest, latest, "notifications/elicitation/complete", "taken"},
	{oldest, latest, "notifications/progress", "sent"},
	{oldest, latest, "notifications/message", "sent"},
	{oldest, latest, "notifications/tools/list_changed", "sent"},
	{oldest, latest, "notifications/prompts/list_changed", "sent"},
	{oldest, latest, "notifications/resources/list_changed", "sent"},
	{oldest, latest, "notifications/resources/updated", "sent"},

	// errors without an id can be sent since 2025-11-25
	{oldest, mcp.Revision20250618, "no JSON", "not answered"},
	{oldest, mcp.Revision20250618, "no message", "not answered"},
	{latestLegacy, latest, "no JSON", "-32700"},
	{latestLegacy, latest, "batch", "-32600"},
	{oldest, oldest, "batch", "not answered"},
	{batching, batching, "batch", "answered|not answered"},
	{mcp.Revision20250618, mcp.Revision20250618, "batch", "not answered"},

	// sessions
	{oldest, latestLegacy, "initialize", "ok|-32600|-32602"},
	{mcp.Revision20250618, latestLegacy, "initialize", "ok, another revision"},
	{oldest, latestLegacy, "notifications/initialized", "taken"},
	{oldest, latestLegacy, "notifications/roots/list_changed", "taken"},
	{oldest, latestLegacy, "notifications/subscriptions/acknowledged", "taken"},
	{oldest, latestLegacy, "ping", "ok"},
	{oldest, latestLegacy, "logging/setLevel", "ok|-32602"},
	{oldest, latestLegacy, "resources/subscribe", "ok|-32601|-32602"},
	{oldest, latestLegacy, "resources/unsubscribe", "ok|-32602"},
	{oldest, latestLegacy, "resources/read", "-32002"},
	{oldest, latestLegacy, "server/discover", "-32601"},
	{oldest, latestLegacy, "subscriptions/listen", "-32601"},
	{oldest, latestLegacy, "sampling/createMessage", "answered|refused|withdrawn"},
	{oldest, latestLegacy, "roots/list", "answered|refused"},
	{mcp.Revision20250618, latestLegacy, "elicitation/create", "accept|decline|cancel|refused|withdrawn"},
	{latestLegacy, latestLegacy, "elicitation/create (url)", "accept|decline"},
	{latestLegacy, latestLegacy, "notifications/elicitation/complete", "sent"},
	{latestLegacy, latestLegacy, "sampling/createMessage (tools)", "answered"},
	{latestLegacy, latestLegacy, "tools/call", "-32042"},
	{latestLegacy, latestLegacy, "tasks/get", "-32601"},
	{latestLegacy, latestLegacy, "tasks/list", "-32601"},

	// requests without a further outcome
	{latest, latest, "server/discover", "ok|-32022|-32602, no version"},
	{latest, latest, "tools/list", "-32022|-32602, no version|-32602, no capabilities|-32602, no log level"},
	{latest, latest, "tools/call", "-32021|-32022|input_required|input_required, several"},
	{latest, latest, "tools/call", "ok, with answers|tool error, with answers|input_required, with answers|input_required, several, with answers|-32602, with answers"},
	{latest, latest, "prompts/get", "-32021|input_required|ok, with answers|-32602, with answers"},
	{latest, latest, "resources/read", "-32021|input_required|ok, with answers|-32602, with answers"},
	{latest, latest, "elicitation/create", "asked"},
	{latest, latest, "elicitation/create (url)", "asked"},
	{latest, latest, "sampling/createMessage", "asked"},
	{latest, latest, "sampling/createMessage (tools)", "asked"},
	{latest, latest, "roots/list", "asked"},
	{latest, latest, "subscriptions/listen", "ok|left open|cancelled|-32602"},
	{latest, latest, "notifications/subscriptions/acknowledged", "sent"},
	{latest, latest, "notifications/initialized", "taken"},
	{latest, latest, "notifications/roots/list_changed", "taken"},
	{latest, latest, "initialize", "-32022|-32601"},
	{latest, latest, "ping", "-32601"},
	{latest, latest, "logging/setLevel", "-32601"},
	{latest, latest, "resources/subscribe", "-32601"},
	{latest, latest, "resources/unsubscribe", "-32601"},
}

// since lists members that are sent from a revision on. Transcripts of these revisions must show
// them, and transcripts of earlier ones must not.
var since = []struct {
	from           mcp.Revision
	place, members string // separated by spaces
}{
	{oldest, "tools/list", "name description inputSchema"},
	{batching, "tools/list", "annotations"},
	{mcp.Revision20250618, "tools/list", "title outputSchema _meta"},
	{latestLegacy, "tools/list", "icons"},
	{oldest, "prompts/list", "name description arguments"},
	{mcp.Revision20250618, "prompts/list", "title _meta"},
	{latestLegacy, "prompts/list", "icons"},
	{oldest, "resources/list", "uri name description mimeType size annotations"},
	{mcp.Revision20250618, "resources/list", "title _meta"},
	{latestLegacy, "resources/list", "icons"},
	{oldest, "resources/templates/list", "uriTemplate name description mimeType annotations"},
	{mcp.Revision20250618, "resources/templates/list", "title _meta"},
	{latestLegacy, "resources/templates/list", "icons"},
	{oldest, "resources/read", "uri mimeType text blob"},
	{mcp.Revision20250618, "resources/read", "_meta"},
	{oldest, "content", "text image resource"},
	{batching, "content", "audio"},
	{mcp.Revision20250618, "content", "resource_link"},
	{oldest, "text", "text annotations"},
	{mcp.Revision20250618, "text", "_meta"},
	{mcp.Revision20250618, "resource_link", "title _meta annotations"},
	{latestLegacy, "resource_link", "icons"},
	{oldest, "annotations", "audience priority"},
	{mcp.Revision20250618, "annotations", "lastModified"},
	{mcp.Revision20250618, "structuredContent", "object"},
	{latest, "structuredContent", "array string number boolean null"},
	{oldest, "serverInfo", "name version"},
	{mcp.Revision20250618, "serverInfo", "title"},
	{latestLegacy, "serverInfo", "description websiteUrl icons"},
	{oldest, "capabilities", "tools prompts resources logging"},
	{batching, "capabilities", "completions"},
	{batching, "progress", "message"},
	{latestLegacy, "elicitation/create", "mode"},
	{latest, "result", "resultType ttlMs cacheScope"},
}

// tallies reads all transcripts.
func tallies(t *testing.T) map[mcp.Revision]tally {
	all := map[mcp.Revision]tally{}
	for _, r := range mcp.Revisions() {
		all[r] = tally{map[string]bool{}, map[string]bool{}}
	}
	for _, file := range files(t) {
		if tl, ok := all[mcp.Revision(path.Dir(file))]; ok {
			tl.read(t, file)
		}
	}
	return all
}

func TestEveryOutcomeHasATranscript(t *testing.T) {
	all := tallies(t)
	for _, m := range must {
		for revision, tl := range all {
			if revision < m.from || revision > m.to {
				continue
			}
			for outcome := range strings.SplitSeq(m.outcomes, "|") {
				if !tl.outcomes[m.method+": "+outcome] {
					t.Errorf("no transcript of %s shows %s: %s", revision, m.method, outcome)
				}
			}
		}
	}
}

func TestMembersAreSentSinceTheirRevision(t *testing.T) {
	all := tallies(t)
	for _, s := range since {
		for name := range strings.FieldsSeq(s.members) {
			member := s.place + ": " + name
			for revision, tl := range all {
				switch {
				case revision < s.from && tl.members[member]:
					t.Errorf("a transcript of %s has %s, which came with %s", revision, member, s.from)
				case revision >= s.from && !tl.members[member]:
					t.Errorf("no transcript of %s has %s", revision, member)
				}
			}
		}
	}
}

// A method or notification of the protocol has rows for every revision: where it does not belong,
// it is refused or ignored.
func TestEveryMethodHasRows(t *testing.T) {
	for method := range mcpwire.MethodNames() {
		rows := map[mcp.Revision]bool{}
		for _, m := range must {
			if name, _, _ := strings.Cut(m.method, " "); name != method {
				continue
			}
			for _, revision := range mcp.Revisions() {
				rows[revision] = rows[revision] || m.from <= revision && revision <= m.to
			}
		}
		for _, revision := range mcp.Revisions() {
			if !rows[revision] {
				t.Errorf("must has no row for %s in %s", method, revision)
			}
		}
	}
}

// A row with its revisions in the wrong order, or without names, would check nothing.
func TestEveryRowAsksForSomething(t *testing.T) {
	for _, m := range must {
		if m.from > m.to || m.method == "" || m.outcomes == "" {
			t.Errorf("must: %+v", m)
		}
	}
}
