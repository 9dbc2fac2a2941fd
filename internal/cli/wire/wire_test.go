package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/journal/export"
	"github.com/dowel-mcp/dowel/internal/journal/filter"
	"github.com/dowel-mcp/dowel/internal/term"
)

// record returns the lines of a recording with a fixed time: a call, one that fails, one that asks,
// a stray line, and a gap.
func record(t *testing.T) (lines []journal.Line) {
	t.Helper()
	r := journal.New(journal.Options{})
	defer r.Close()
	c, s := r.ClientConn(), r.ServerConn("github")
	client := func(id int, method, params string) {
		c.AddFrame(framesink.Received, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"cursor"}}}}`, id, method, params), nil)
	}
	client(1, "tools/call", `"name":"create_issue","arguments":{"title":"A bug: it's \"big\" – 大"},`)
	c.AddFrame(framesink.Sent, []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"number":7}}}`), nil)
	client(2, "tools/call", `"name":"delete_repo","arguments":{"name":"x"},`)
	c.AddFrame(framesink.Sent, []byte(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no such repository"}}`), nil)
	client(3, "prompts/get", `"name":"greet",`)
	c.AddFrame(framesink.Sent, []byte(`{"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","requestState":"s1","inputRequests":{"q":{}}}}`), nil)
	s.AddFrame(framesink.Malformed, []byte("Listening on port 3000"), nil)
	_, newest := r.Bounds()
	at := time.Date(2026, 11, 23, 14, 2, 31, 0, time.Local)
	for cursor := r.Cursor(0); cursor.Position() < newest; {
		records, _, err := cursor.Next(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range records {
			l := journal.LineOf(one)
			at = at.Add(12 * time.Millisecond)
			if l.Time = at; l.K == "op" {
				l.Start, l.MS, l.ServerMS, l.DowelMS = at.Add(-12*time.Millisecond), 12, 0, 12
			} else if l.MS > 0 || l.Status != "" {
				l.MS = 12
			}
			lines = append(lines, l)
		}
	}
	gap := journal.GapLine(journal.Gap{From: 5, To: 316})
	return append(lines[:2:2], append([]journal.Line{gap}, lines[2:]...)...)
}

// showLines returns the output of dowel wire for lines.
func showLines(t *testing.T, out func(*factory.Factory) writer, text string, lines []journal.Line) string {
	t.Helper()
	accept, err := filter.Parse(text, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	f := &factory.Factory{Stdout: term.NewScreen(&b, func() {}), Stderr: term.NewScreen(&b, func() {})}
	v := newView(accept, out(f))
	for _, l := range lines {
		v.addLine(l)
	}
	v.writeRest()
	return b.String()
}

func textOf(width int, frames bool) func(*factory.Factory) writer {
	return func(f *factory.Factory) writer { return &textWriter{f: f, frames: frames, width: width} }
}

func TestGoldenScreens(t *testing.T) {
	t.Parallel()
	lines := record(t)
	for _, tt := range []struct {
		file   string
		width  int
		frames bool
	}{{"operations-80.txt", 80, false}, {"operations-120.txt", 120, false}, {"frames-80.txt", 80, true}, {"frames-120.txt", 120, true}} {
		got := showLines(t, textOf(tt.width, tt.frames), "", lines)
		path := "testdata/" + tt.file
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\ngot\n%swant\n%s", tt.file, err, got, want)
		}
		for _, line := range strings.Split(got, "\n") {
			if n := term.TextWidth(line); n > tt.width {
				t.Errorf("%s: a line takes %d columns: %s", tt.file, n, line)
			}
		}
	}
}

// A hostile server's text does not reach the terminal raw, whatever the output.
func TestHostileText(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b]0;owned\x07\x1b[31m\u202egnp.exe\u2066\u200b\x00\x9b2J\r"
	quoted, _ := json.Marshal(hostile)
	r := journal.New(journal.Options{})
	defer r.Close()
	c, s := r.ClientConn(), r.ServerConn("evil"+hostile)
	c.AddFrame(framesink.Received, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%s,"arguments":{"a":%s,"long":"%s"}}}`, quoted, quoted, strings.Repeat("x", 1<<20)), nil)
	c.AddFrame(framesink.Sent, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":%s}}`, quoted), nil)
	c.AddFrame(framesink.Received, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%s,"arguments":{"a":"%s"}}}`, quoted, hostile[9:30]), nil)
	c.AddFrame(framesink.Sent, []byte(`{"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"t":"`+"\u202e"+`"}}}`), nil)
	s.AddFrame(framesink.Malformed, []byte(hostile+"\xff\xfe"+strings.Repeat("y", 1<<20)), nil)
	s.AddFrame(framesink.Received, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s}`, quoted), nil)
	_, newest := r.Bounds()
	var lines []journal.Line
	for cursor := r.Cursor(0); cursor.Position() < newest; {
		records, _, err := cursor.Next(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range records {
			lines = append(lines, journal.LineOf(one))
		}
	}
	outputs := map[string]func(*factory.Factory) writer{
		"text": textOf(0, false), "narrow text": textOf(80, false), "frames": textOf(0, true), "narrow frames": textOf(80, true),
	}
	for _, as := range export.CommandNames {
		outputs[as] = func(f *factory.Factory) writer { return &commandWriter{f: f, as: as} }
	}
	for name, out := range outputs {
		got := showLines(t, out, "", lines)
		if i := strings.IndexFunc(got, isTerminalControl); i >= 0 || !utf8.ValidString(got) || got == "" {
			t.Errorf("%s: %q at %d of %.300q", name, got[max(0, i):min(len(got), i+10)], i, got)
		}
		if len(got) > 100_000 {
			t.Errorf("%s has %d bytes", name, len(got))
		}
	}
}

// isTerminalControl reports whether a terminal may obey r.
func isTerminalControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func TestFilteredRows(t *testing.T) {
	t.Parallel()
	lines := record(t)
	for text, want := range map[string]string{
		"status:refused": "delete_repo", "tool:create_*": "create_issue", "kind:stray": "Listening", "status:asked": "greet",
		`args.title:*bug*`: "create_issue", "result.structuredContent.number:7": "create_issue", "-client:cursor": "Listening",
	} {
		got := showLines(t, textOf(0, false), text, lines)
		if rows := strings.Split(strings.TrimSpace(got), "\n"); len(rows) != 2 || !strings.Contains(got, want) { // one is the gap
			t.Errorf("%s: want %s, got\n%s", text, want, got)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	lines := record(t)
	for as, want := range map[string]string{
		"dowel": `dowel call create_issue --args '{"title":"A bug: it'\''s \"big\" \u2013 \u5927"}'`,
		"curl":  `-H 'Mcp-Name: create_issue' --data '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_issue","arguments":{"title":"A bug`,
	} {
		got := showLines(t, func(f *factory.Factory) writer { return &commandWriter{f: f, as: as} }, "tool:create_issue", lines)
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s\nwant %s", as, got, want)
		}
	}
	got := showLines(t, func(f *factory.Factory) writer { return &commandWriter{f: f, as: "go-test"} }, "tool:create_issue", lines[:2:2])
	got += showLines(t, func(f *factory.Factory) writer { return &commandWriter{f: f, as: "go-test"} }, "tool:create_issue", append(lines[:2:2], lines[3:]...))
	if _, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+got, 0); err != nil || !strings.Contains(got, "func TestCreateIssue1(") || !strings.Contains(got, `"{\"number\":7}"`) {
		t.Errorf("%v in\n%s", err, got)
	}
}

// What --export jsonl writes, dowel wire shows as the running dowel would.
func TestRecordingIsReadBack(t *testing.T) {
	t.Parallel()
	lines := record(t)
	exported := showLines(t, func(f *factory.Factory) writer { return &jsonWriter{f: f, frames: true, operations: true} }, "", append(lines[:2:2], lines[3:]...))
	var back []journal.Line
	for i, text := range strings.Split(strings.TrimSpace(exported), "\n") {
		l, err := journal.ParseLine([]byte(text), i+1)
		if err != nil {
			t.Fatal(err)
		}
		back = append(back, l)
	}
	got, want := showLines(t, textOf(120, false), "", back), showLines(t, textOf(120, false), "", append(lines[:2:2], lines[3:]...))
	if got != want || !strings.Contains(want, "create_issue") {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestHAR(t *testing.T) {
	t.Parallel()
	got := showLines(t, func(f *factory.Factory) writer { return &harWriter{f: f} }, "", append(record(t)[:2:2], record(t)[3:]...))
	var archive struct {
		Log struct {
			Version string
			Entries []struct {
				Request struct {
					URL      string
					PostData struct{ Text string }
				}
				Response struct{ Content struct{ Text string } }
			}
		}
	}
	if err := json.Unmarshal([]byte(got), &archive); err != nil || archive.Log.Version != "1.2" || len(archive.Log.Entries) != 2 {
		t.Fatalf("%v in %s", err, got)
	}
	e := archive.Log.Entries[0]
	if e.Request.URL != "mcp://dowel/tools/call" || !strings.Contains(e.Request.PostData.Text, "create_issue") || !strings.Contains(e.Response.Content.Text, `"number":7`) {
		t.Errorf("%+v", e)
	}
}

// linesOf returns the lines of a recorder.
func linesOf(t *testing.T, r *journal.Recorder) (lines []journal.Line) {
	t.Helper()
	_, newest := r.Bounds()
	for cursor := r.Cursor(0); cursor.Position() < newest; {
		records, _, err := cursor.Next(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range records {
			lines = append(lines, journal.LineOf(one))
		}
	}
	return lines
}

// Names and messages of wide characters do not move the columns behind them.
func TestWideCharacters(t *testing.T) {
	t.Parallel()
	r := journal.New(journal.Options{})
	defer r.Close()
	c, s := r.ClientConn(), r.ServerConn("天気予報サーバー日本")
	for i, title := range []string{"short", strings.Repeat("大きい問題", 40), strings.Repeat("🚀e\u0301", 60)} {
		c.AddFrame(framesink.Received, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"予報","arguments":{"title":%q},"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"クライアントソフト"}}}}`, i, title), nil)
		c.AddFrame(framesink.Sent, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, i), nil)
	}
	s.AddFrame(framesink.Malformed, []byte("起動しました"), nil)
	for _, width := range []int{80, 120} {
		got := strings.Split(strings.TrimSpace(showLines(t, textOf(width, false), "", linesOf(t, r))), "\n")
		if len(got) != 4 {
			t.Fatalf("%d lines, want 3 calls and a stray line: %q", len(got), got)
		}
		for _, line := range got[:3] {
			if n := term.TextWidth(line); n != width {
				t.Errorf("a line takes %d columns, want %d: %s", n, width, line)
			}
		}
		for _, line := range strings.Split(strings.TrimSpace(showLines(t, textOf(width, true), "", linesOf(t, r))), "\n") {
			if n := term.TextWidth(line); n > width {
				t.Errorf("a line takes %d columns of %d: %s", n, width, line)
			}
		}
	}
}

// Both exports are valid JSON, in one line each record, whatever a message holds; values come back
// as they were, except for bytes outside UTF-8.
func TestExportsEscape(t *testing.T) {
	t.Parallel()
	const text = "<script>\u2028 \\ \"q\" \x00 \x7f 大 \u202e </script>&"
	quoted, _ := json.Marshal(text)
	r := journal.New(journal.Options{})
	defer r.Close()
	c, s := r.ClientConn(), r.ServerConn("s")
	header := map[string][]string{"X-Note": {"a\"b\\c\n<"}}
	c.AddFrame(framesink.Received, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":%s}}}`, quoted), header)
	c.AddFrame(framesink.Sent, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"a":%s}}`, quoted), nil)
	s.AddFrame(framesink.Received, []byte("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":\"\xff \\ud83d\"}}"), nil)
	s.AddFrame(framesink.Malformed, []byte("\xff\xfe \x1b[31m \" \\ \n end"), nil)
	lines := linesOf(t, r)
	jsonl := showLines(t, func(f *factory.Factory) writer { return &jsonWriter{f: f, frames: true, operations: true} }, "", lines)
	rows := strings.Split(strings.TrimSpace(jsonl), "\n")
	if len(rows) != 5 || !utf8.ValidString(jsonl) { // the beginning of the operation is not exported
		t.Errorf("%d lines, want 5: %s", len(rows), jsonl)
	}
	for i, row := range rows {
		l, err := journal.ParseLine([]byte(row), i+1)
		if err != nil {
			t.Fatal(err)
		}
		if l.Frame != nil && l.Wire == "received" {
			var m struct {
				Params struct{ Arguments struct{ A string } }
			}
			if err := json.Unmarshal(l.Frame, &m); err != nil || m.Params.Arguments.A != text || l.Header["X-Note"][0] != header["X-Note"][0] {
				t.Errorf("%v: the request came back as %s", err, row)
			}
		}
		if l.Wire == "stray" && l.Text != "\uFFFD \x1b[31m \" \\ \n end" {
			t.Errorf("the stray line came back as %q", l.Text)
		}
	}
	har := showLines(t, func(f *factory.Factory) writer { return &harWriter{f: f} }, "", lines)
	var archive struct {
		Log struct {
			Entries []struct {
				Request struct {
					Headers  []struct{ Value string }
					PostData struct{ Text string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(har), &archive); err != nil || len(archive.Log.Entries) != 1 || strings.Count(har, "\n") != 1 {
		t.Fatalf("%v in %s", err, har)
	}
	request := archive.Log.Entries[0].Request
	if !json.Valid([]byte(request.PostData.Text)) || !strings.Contains(request.PostData.Text, string(quoted)) || request.Headers[0].Value != header["X-Note"][0] {
		t.Errorf("the archive has %+v", request)
	}
}
