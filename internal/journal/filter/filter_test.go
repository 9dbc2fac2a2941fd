package filter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/journal/filter"
	"github.com/dowel-mcp/dowel/jsonrpc"
)

var now = time.Date(2026, 11, 23, 14, 10, 0, 0, time.UTC)

func testItem() filter.Item {
	return filter.Item{
		Frame: &journal.Frame{
			Time: now.Add(-5 * time.Minute), Leg: journal.ServerLeg, Direction: framesink.Sent, Kind: journal.Request, Conn: 3, Server: "github", Client: "cursor",
			Revision: "2025-11-25", Method: "tools/call", Name: "create_issue", ID: jsonrpc.IntID(7), Operation: 81, Size: 20_000,
			Header: map[string][]string{"Mcp-Name": {"create_issue"}},
			Body:   []byte(`{"params":{"arguments":{"path":"/etc/hosts","n":1.50,"list":[{"a":"x"},{"a":"y"}],"flag":true}},"note":"Some Text"}`),
		},
		Operation: &journal.Operation{ID: 81, Client: "cursor", Server: "github", Method: "tools/call", Name: "create_issue", Status: journal.ToolError, InServer: time.Second},
		Whole:     true,
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, "server:github": true, "server:GitHub": true, "server:git*": true, "server:gitlab": false, "server:gitlab|github": true,
		"client:cursor tool:create_*": true, "client:cursor tool:delete_*": false, "-tool:delete_*": true, "-server:github": false, "- x": false,
		"(server:x or client:cursor)": true, "server:x or client:cursor": true, "(server:x or client:y)": false, "-(server:x or client:y)": true,
		"status:tool-error": true, "status:error|tool-error": true, "status:*error": true, "status:ok": false, "kind:request": true, "leg:up": true, "leg:client": false,
		"dir:out": true, "dir:in": false, "era:legacy": true, "era:modern": false, "revision:2025*": true, "dur:>500ms": true, "dur:<500ms": false, "dur:1s": true,
		"size:<10k": true, "since:10m": true, "since:1m": false, "until:1m": true, "since:14:04": true, "since:14:06": false, "since:2026-11-23T14:00:00Z": true,
		"id:7": true, "op:81": true, "op:8": false, "conn:3": true, "args.path:/etc*": true, "args.path:/etc/": true, "args.path:/etc": false, "args.n:1.50": true, "args.list.a:y": true,
		"args.flag:true": true, "args.missing:*": false, "header.mcp-name:create_issue": true, "body:hosts": true, "body:/h.sts/": true, "body:/^h/": false,
		`"some text"`: true, "SOME": true, "nothing": false, `args.path:"/etc/hosts"`: true, `server:"git*"`: false, `tool:/^create/`: true,
	} {
		f, err := filter.Parse(text, now)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := f.Match(testItem()); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"sever:x": `unknown key "sever"`, "server:": "a value is missing", "status:fine": "want pending, asked, ok", "kind:x": "want request, response",
		"dur:fast": "want a time such as", "size:big": "want a size such as", "since:soon": "want a time such as", "body:/(/": "is not a regular expression",
		"(server:x": "missing closing )", "server:x)": "has no (", `"open`: `missing closing "`, "or": "or needs a term", "(a or )": "or needs a term",
		strings.Repeat("(", 60): "parentheses are open", strings.Repeat("-", 60) + "a": "terms are nested", strings.Repeat("a", 5000): "longer than 4096",
	} {
		_, err := filter.Parse(text, now)
		var syntax *filter.SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

// FuzzParse checks that every text is parsed or refused, and that no filter fails on an item.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`server:github -kind:note (status:error or dur:>5s) body:/x/ "text"`, "-(-(a|b))", "args.a.b:c|d", `tool:"x\"y"`, "since:14:02 size:>10k", "or or", "a:b:c", "é:ü *:?"} {
		f.Add(text)
	}
	items := []filter.Item{testItem(), {Frame: testItem().Frame}, {Operation: testItem().Operation, Whole: true}, {Frame: &journal.Frame{Body: []byte("\xff[{")}}}
	f.Fuzz(func(t *testing.T, text string) {
		accept, err := filter.Parse(text, now)
		if err != nil {
			return
		}
		for _, item := range items {
			got := accept.Match(item)
			if negated, err := filter.Parse("-("+text+")", now); err == nil && strings.TrimSpace(text) != "" && negated.Match(item) == got {
				t.Errorf("%q and its negation are both %v", text, got)
			}
		}
	})
}

// A filter looks into no text that is not JSON, such as a print on stdout or a message that was
// cut.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"params`, `{"params":{"arguments":{"a":"x`, `{"params":{"arguments":{"a`, `{`, `{"params":`, `[{"params":{`, "Listening"} {
		for _, text := range []string{"args.a:x", "result.isError:true"} {
			accept, err := filter.Parse(text, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if accept.Match(filter.Item{Frame: &journal.Frame{Kind: journal.Stray, Body: []byte(body)}}) {
				t.Errorf("%s matches %s", text, body)
			}
		}
	}
}
