package sql

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

const shop = `
CREATE TABLE city (id int PRIMARY KEY, name text NOT NULL DEFAULT 'Oslo', area numeric(9,2));
COMMENT ON TABLE city IS 'Where people live'; COMMENT ON COLUMN city.name IS 'In English';
CREATE TABLE "Odd name/1" (city int REFERENCES city, ok bool);
CREATE INDEX ON "Odd name/1" (ok);
CREATE VIEW big AS SELECT * FROM city WHERE area > 1;
CREATE SCHEMA more; CREATE TABLE more.nothing ();
INSERT INTO city VALUES (1, 'Oslo', 454.12), (2, 'Rome', 1285.31), (3, 'Rome', NULL);
CREATE FUNCTION add_city() RETURNS int LANGUAGE sql AS 'INSERT INTO city VALUES (9) RETURNING id'`

func dial(t *testing.T, o Options, revision mcp.Revision, checks ...mcptest.TapOption) *client.Client {
	t.Helper()
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), s, &client.Options{Wire: client.Wire{Revision: revision, Tap: mcptest.ClientTap(t, checks...)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c
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

func wantToolError(t *testing.T, c *client.Client, tool, sql, want string) {
	t.Helper()
	_, err := client.Call[json.RawMessage](t.Context(), c, tool, map[string]string{"sql": sql})
	failed, ok := errors.AsType[*client.ToolError](err)
	if !ok {
		t.Errorf("%s: got the error %v, want a tool error with %q", sql, err, want)
	} else if text := failed.Result.Content[0].Text; !strings.Contains(text, want) {
		t.Errorf("%s: got the error %q, want one with %q", sql, text, want)
	}
}

// One PostgreSQL serves all tests.
func TestPostgres(t *testing.T) {
	database := startPostgres(t)
	execute(t, database, shop)
	newest := mcp.Revisions()[0]
	t.Run("Revisions", func(t *testing.T) {
		for _, revision := range mcp.Revisions() {
			testQuery(t, dial(t, Options{URL: database}, revision))
		}
	})
	t.Run("OnlyReads", func(t *testing.T) { testOnlyReads(t, dial(t, Options{URL: database}, newest)) })
	t.Run("Limits", func(t *testing.T) { testLimits(t, database) })
	t.Run("Schema", func(t *testing.T) { testSchema(t, dial(t, Options{URL: database}, newest)) })
	t.Run("Changes", func(t *testing.T) { testChanges(t, database) })
}

func testQuery(t *testing.T, c *client.Client) {
	out, err := client.Call[Result](t.Context(), c, "query", queryIn{SQL: "SELECT name, count(*), sum(area), 'NaN'::float8, true FROM city GROUP BY 1 ORDER BY 1", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, out, `{"columns":[{"name":"name","type":"text"},{"name":"count","type":"int8"},{"name":"sum","type":"numeric"},{"name":"float8","type":"float8"},{"name":"?column?","type":"bool"}],"rows":[["Oslo",1,"454.12","NaN",true],["Rome",2,"1285.31","NaN",true]],"truncated":false}`)
}

func testOnlyReads(t *testing.T, c *client.Client) {
	for sql, want := range map[string]string{
		"DELETE FROM city":           "syntax error",
		"SELECT 1; DELETE FROM city": "multiple commands",
		"WITH d AS (DELETE FROM city RETURNING id) SELECT * FROM d":           "data-modifying",
		"SELECT 1; COMMIT; DELETE FROM city":                                  "multiple commands",
		"SELECT add_city()":                                                   "read-only transaction",
		"SELECT set_config('transaction_read_only', 'off', true), add_city()": "before any query",
		"SELECT absent FROM city":                                             "column \"absent\" does not exist",
		"SELECT 1/0":                                                          "division by zero (SQLSTATE 22012)",
		"COMMIT":                                                              "syntax error",
		"SELECT 'a\x00b'":                                                     "",
	} {
		wantToolError(t, c, "query", sql, want)
	}
	wantToolError(t, c, "explain", "ANALYZE SELECT add_city()", "")
	wantToolError(t, c, "explain", "SELECT 1; COMMIT; DELETE FROM city", "multiple commands")
	out, err := client.Call[Result](t.Context(), c, "query", queryIn{SQL: "SELECT count(*) FROM city", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, out.Rows, `[[3]]`)
	plan, err := client.Call[Plan](t.Context(), c, "explain", explainIn{"SELECT * FROM city"})
	if err != nil || !strings.Contains(string(plan.Plan), "Seq Scan") {
		t.Errorf("%s, %v", plan.Plan, err)
	}
}

func testLimits(t *testing.T, database string) {
	c := dial(t, Options{URL: database, Timeout: 50 * time.Millisecond}, mcp.Revisions()[0])
	wantToolError(t, c, "query", "SELECT pg_sleep(1000)", "statement timeout")
	wantToolError(t, c, "query", "SELECT set_config('statement_timeout', '0', false), pg_sleep(1000)", "statement timeout")
	c = dial(t, Options{URL: database}, mcp.Revisions()[0])
	wantToolError(t, c, "query", "SELECT repeat('x', 20000000)", "want at most")
	out, err := client.Call[Result](t.Context(), c, "query", queryIn{SQL: "SELECT generate_series(1, 1000000000000) AS i", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, []any{out.Rows, out.Truncated}, `[[[1],[2],[3]],true]`)
	out, err = client.Call[Result](t.Context(), c, "query", queryIn{SQL: "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)", Limit: 1000})
	if err != nil || len(out.Rows) > maxResult/maxCell+1 || !out.Truncated {
		t.Errorf("%d rows, %v", len(out.Rows), err)
	}
}

func testSchema(t *testing.T, c *client.Client) {
	var uris []string
	for r, err := range c.Resources(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, r.URI)
	}
	wantJSON(t, uris, `["postgres:///more/nothing","postgres:///public/Odd%20name%2F1","postgres:///public/big","postgres:///public/city"]`)
	read, err := c.ReadResource(t.Context(), uris[3])
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, json.RawMessage(read.Contents[0].Text), `{"schema":"public","name":"city","kind":"table","comment":"Where people live","rows":-1,"columns":[{"name":"id","type":"integer","nullable":false},{"name":"name","type":"text","nullable":false,"default":"'Oslo'::text","comment":"In English"},{"name":"area","type":"numeric(9,2)","nullable":true}],"keys":["city_pkey PRIMARY KEY (id)"],"indexes":["CREATE UNIQUE INDEX city_pkey ON public.city USING btree (id)"]}`)
	read, err = c.ReadResource(t.Context(), uris[1])
	if err != nil || !strings.Contains(read.Contents[0].Text, "FOREIGN KEY (city) REFERENCES city(id)") {
		t.Errorf("%v, %v", read, err)
	}
	for _, uri := range []string{"postgres:///public/absent", "postgres:///pg_catalog/absent", "postgres:///public/a%00"} {
		if _, err := c.ReadResource(t.Context(), uri); err == nil {
			t.Errorf("%s can be read", uri)
		}
	}
	template := mcp.ResourceRef(uriPrefix + "{schema}/{table}")
	schemas, err := c.Complete(t.Context(), template, "schema", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := c.Complete(t.Context(), template, "table", "ci", map[string]string{"schema": "public"})
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, [][]string{schemas.Values, tables.Values}, `[["more","public"],["city"]]`)
}

// The schema changes again and again, because a change before the server's first look is not one.
func testChanges(t *testing.T, database string) {
	// A change may cross the cancellation of the subscription.
	c := dial(t, Options{URL: database, Poll: 10 * time.Millisecond}, mcp.Revisions()[0], mcptest.WithoutChecks("server:after-end"))
	const city = "postgres:///public/city"
	var listChanged, updated atomic.Bool
	filter := mcp.SubscriptionFilter{ResourcesListChanged: true, ResourceSubscriptions: []string{city}}
	watch, err := c.OnChange(t.Context(), filter, func(change client.Change, _ error) {
		switch {
		case change.URI == city:
			updated.Store(true)
		case change.Method == mcp.NotificationResourcesChanged:
			listChanged.Store(true)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	changes := 0
	polltest.Until(t, "a change of the list and one of the table", func() bool {
		changes++
		execute(t, database, fmt.Sprintf("COMMENT ON TABLE city IS 'change %d'; CREATE TABLE more.t%[1]d ()", changes))
		return listChanged.Load() && updated.Load()
	})
}
