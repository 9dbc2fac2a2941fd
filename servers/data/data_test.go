package data

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

const salesCSV = "city,price,sold,code\nOslo,10.5,3,007\nRome,20,1,012\nOslo,,2,\n\"Ro\"\"me, old\",5,x,1\n"

// dial serves the files to a client of the newest revision.
func dial(t *testing.T, opts Options, files map[string]string) *client.Client {
	t.Helper()
	return dialRevision(t, opts, files, mcp.Revisions()[0])
}

func dialRevision(t *testing.T, opts Options, files map[string]string, revision mcp.Revision) *client.Client {
	t.Helper()
	if opts.Roots == nil {
		opts.Roots = []string{t.TempDir()}
	}
	for name, text := range files {
		path := filepath.Join(opts.Roots[0], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), s, &client.Options{Wire: client.Wire{Revision: revision, Tap: mcptest.ClientTap(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c
}

func call[Out any](t *testing.T, c *client.Client, tool string, in any) Out {
	t.Helper()
	out, err := client.Call[Out](t.Context(), c, tool, in)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return out
}

// wantToolError calls a tool that must fail with a text for the model.
func wantToolError(t *testing.T, c *client.Client, tool string, in any, want string) {
	t.Helper()
	_, err := client.Call[json.RawMessage](t.Context(), c, tool, in)
	failed, ok := errors.AsType[*client.ToolError](err)
	if !ok {
		t.Errorf("%s: got the error %v, want a tool error with %q", tool, err, want)
	} else if text := failed.Result.Content[0].Text; !strings.Contains(text, want) {
		t.Errorf("%s: got the error %q, want one with %q", tool, text, want)
	}
}

func wantJSON(t *testing.T, got any, want string) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
}

func TestEveryRevision(t *testing.T) {
	for _, revision := range mcp.Revisions() {
		t.Run(string(revision), func(t *testing.T) {
			c := dialRevision(t, Options{}, map[string]string{"sales.csv": salesCSV}, revision)
			wantJSON(t, call[Number](t, c, "sum", numbersIn{[]float64{0.1, 0.2, 5}}), `{"result":5.3}`)
			got := call[Result](t, c, "query", queryIn{SQL: "SELECT sum(price) FROM s", Tables: map[string]string{"s": "sales.csv"}, Limit: 1})
			wantJSON(t, got.Rows, `[[35.5]]`)
			if out := call[Analysis](t, c, "analyze_csv", analyzeIn{"sales.csv"}); out.Rows != 4 {
				t.Errorf("%d rows, want 4", out.Rows)
			}
		})
	}
}

func TestArithmetic(t *testing.T) {
	c := dial(t, Options{}, nil)
	for tool, want := range map[string]string{"subtract": "0.1", "multiply": "0.06", "divide": "1.5"} {
		wantJSON(t, call[Number](t, c, tool, pairIn{0.3, 0.2}), `{"result":`+want+`}`)
	}
	wantJSON(t, call[Number](t, c, "mean", numbersIn{[]float64{1, 2, 6}}), `{"result":3}`)
	wantToolError(t, c, "divide", pairIn{1, 0}, "b is zero")
	wantToolError(t, c, "multiply", pairIn{1e300, 1e300}, "too large")
}

func TestAnalyzeColumns(t *testing.T) {
	c := dial(t, Options{}, map[string]string{"sales.csv": salesCSV})
	out := call[Analysis](t, c, "analyze_csv", analyzeIn{"sales.csv"})
	wantJSON(t, out.Columns[0], `{"name":"city","type":"text","types":{"text":4},"missing":0,"distinct":3,"exact":true,"min":"Oslo","max":"Rome","top":[{"value":"Oslo","count":2,"missed":0},{"value":"Ro\"me, old","count":1,"missed":0},{"value":"Rome","count":1,"missed":0}]}`)
	wantJSON(t, out.Columns[1].Numbers, `{"min":5,"max":20,"mean":11.833333333333334,"deviation":6.195876765147036,"p5":5.55,"p25":7.75,"median":10.5,"p75":15.25,"p95":19.05}`)
	wantJSON(t, []any{out.Columns[1].Type, out.Columns[1].Missing, out.Columns[2].Type, out.Columns[2].Types, out.Columns[3].Types},
		`["number",1,"mixed",{"integer":3,"text":1},{"integer":1,"text":2}]`)
}

func TestQueryFormats(t *testing.T) {
	c := dial(t, Options{}, map[string]string{
		"a.csv":   "id;name\r\n1;Ada\r\n2;\"Bob; B\"\r\n",
		"b.tsv":   "\uFEFFid\tscore\n1\t9.5\n2\t\n",
		"c.jsonl": "{\"id\":1,\"tags\":[\"x\",\"y\"],\"ok\":true}\n\n{\"id\":2,\"note\":\"later\"}\n",
	})
	got := call[Result](t, c, "query", queryIn{Limit: 10,
		SQL:    "SELECT a.name, b.score, c.tags, c.ok, c.note FROM a JOIN b USING (id) JOIN c USING (id) ORDER BY id",
		Tables: map[string]string{"a": "a.csv", "b": "b.tsv", "c": "c.jsonl"}})
	wantJSON(t, got, `{"columns":["name","score","tags","ok","note"],"rows":[["Ada",9.5,"[\"x\",\"y\"]",1,null],["Bob; B",null,null,null,"later"]],"truncated":false}`)
}

func TestQueryLimits(t *testing.T) {
	c := dial(t, Options{TempSize: 1 << 20}, map[string]string{"n.csv": "n\n" + strings.Repeat("1\n", 300)})
	tables := map[string]string{"n": "n.csv"}
	out := call[Result](t, c, "query", queryIn{SQL: "SELECT n FROM n", Tables: tables, Limit: 5})
	if len(out.Rows) != 5 || !out.Truncated {
		t.Errorf("%d rows, truncated: %v", len(out.Rows), out.Truncated)
	}
	out = call[Result](t, c, "query", queryIn{SQL: "SELECT printf('%200000d', n) FROM n", Tables: tables, Limit: 1000})
	if raw, _ := json.Marshal(out); len(raw) > maxResult+100*maxCell || !out.Truncated {
		t.Errorf("a result of %d bytes, truncated: %v", len(raw), out.Truncated)
	}
	const numbers = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 1000000) "
	wantToolError(t, c, "query", queryIn{SQL: numbers + "SELECT hex(randomblob(50)) AS x FROM r ORDER BY x", Tables: tables, Limit: 1}, "temporary space")
	wantToolError(t, c, "query", queryIn{SQL: "SELECT length(randomblob(1000000000))", Tables: tables, Limit: 1}, "too big")
}

func TestQueryRefusesOthersThanReading(t *testing.T) {
	c := dial(t, Options{}, map[string]string{"n.csv": "n\n1\n"})
	for sql, want := range map[string]string{
		"DELETE FROM n":                             "may not be modified",
		"CREATE TABLE x(y)":                         "may only read",
		"ATTACH '/etc/passwd' AS p":                 "may only read",
		"PRAGMA temp_store_directory = '/'":         "may only read",
		"VACUUM INTO '/tmp/x'":                      "",
		"SELECT load_extension('x')":                "",
		"SELECT 1; DELETE FROM n":                   "one statement",
		"SELECT absent FROM n":                      "no such column: absent",
		"-- nothing":                                "empty",
		"WITH x AS (SELECT 1) INSERT INTO n SELECT": "",
	} {
		wantToolError(t, c, "query", queryIn{SQL: sql, Tables: map[string]string{"n": "n.csv"}, Limit: 1}, want)
	}
}

// The recursion has no end, so the query can only end by its time limit.
func TestQueryEndsInTime(t *testing.T) {
	c := dial(t, Options{Timeout: 1}, nil)
	const endless = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
	wantToolError(t, c, "query", queryIn{SQL: endless, Tables: map[string]string{}, Limit: 1}, "took longer than")
}

func TestChart(t *testing.T) {
	c := dial(t, Options{}, map[string]string{"sales.csv": "city,n\n<script>alert(1)</script>,3\nB,-2\n"})
	in := chartIn{SQL: "SELECT city, n FROM s", Tables: map[string]string{"s": "sales.csv"}, Title: "a & b"}
	for _, kind := range []string{"bar", "line"} {
		in.Kind = kind
		result, err := client.Call[*mcp.CallToolResult](t.Context(), c, "chart", in)
		if err != nil || result.Content[0].Resource == nil {
			t.Fatalf("%v, %v", result, err)
		}
		image := result.Content[0].Resource
		if image.MIMEType != "image/svg+xml" || strings.Contains(image.Text, "<script") || !strings.Contains(image.Text, "a &amp; b") {
			t.Errorf("%s: %s", image.MIMEType, image.Text)
		}
		wantXML(t, image.Text)
	}
	in.SQL = "SELECT n, city FROM s"
	wantToolError(t, c, "chart", in, "want numbers")
}
