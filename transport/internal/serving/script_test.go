package serving_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

var quiet = slog.New(slog.DiscardHandler)

// play runs a script in the language of golden transcripts, with abbreviations:
//
//	$META   the _meta of a modern request whose client declares nothing, $FULL everything; $M any message of an error
//	$INIT r the handshake of a client of revision r that declares everything
//	$OK n t the result of a tool that returned text, of the revision that was initialized last
func play(t *testing.T, h mcp.Handler, opts transport.ServerOptions, script string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(expand(script)), 0o600); err != nil {
		t.Fatal(err)
	}
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	t.Context().Done() // belongs to this test, not to the bubble that the transcript is played in
	w, ok := h.(*testServer)
	if !ok {
		mcptest.Transcript(t, file, func() mcp.Handler { return h }, opts)
		return
	}
	var before string // what the handlers of the run before saw
	runs := 0
	mcptest.Transcript(t, file, func() mcp.Handler {
		before = w.restart() // with channels of the bubble
		runs++
		return w
	}, opts)
	if after := w.seen(); runs == 2 && sortLines(before) != sortLines(after) { // subscriptions end in any order
		t.Errorf("the handlers saw, over a wire:\n%s\nin process:\n%s", before, after)
	}
}

func sortLines(s string) string { return strings.Join(slices.Sorted(strings.SplitSeq(s, "\n")), "\n") }

var handshake = regexp.MustCompile(`(?m)^\s*\$INIT (\S+)$`)
var result = regexp.MustCompile(`(?m)^\s*\$OK (\S+) (.*)$`)

func expand(script string) string {
	any := 0
	var lines []string
	legacy := false
	for _, line := range strings.Split(script, "\n") {
		line = strings.TrimSpace(line)
		if m := handshake.FindStringSubmatch(line); m != nil {
			legacy = true
			lines = append(lines, strings.Split(initialize(m[1]), "\n")...)
			continue
		}
		if m := result.FindStringSubmatch(line); m != nil {
			line = `< {"jsonrpc":"2.0","id":` + m[1] + `,"result":{"resultType":"complete","content":[{"type":"text","text":` + m[2] + `}]}}`
			if legacy {
				line = strings.Replace(line, `"resultType":"complete",`, ``, 1)
			}
		}
		line = strings.ReplaceAll(line, "$META", modernMeta)
		line = strings.ReplaceAll(line, "$FULL", strings.Replace(modernMeta, "{}", allCapabilities, 1))
		for strings.Contains(line, "$M") {
			any++
			line = strings.Replace(line, "$M", fmt.Sprintf(`"${m%d}"`, any), 1)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

const allCapabilities = `{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}`

func initialize(revision string) string {
	title, completions := `,"title":"W"`, `"completions":{},`
	if revision < "2025-06-18" {
		title = ""
	}
	if revision < "2025-03-26" {
		completions = ""
	}
	return `> {"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + revision + `","capabilities":` + allCapabilities + `,"clientInfo":{"name":"c","version":"1"}}}
< {"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"` + revision + `","capabilities":{` + completions + `"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{},"logging":{}},"serverInfo":{"name":"w","version":"1"` + title + `},"instructions":"be kind"}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}`
}

type row struct {
	name, script string
	opts         transport.ServerOptions
}

func playAll(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) { play(t, newTestServer(), r.opts, r.script) })
	}
}
