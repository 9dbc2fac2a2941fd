package streamable_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// The client concludes the server's era from its answer to the probe (basic/versioning,
// basic/transports/streamable-http: backward compatibility). Rows are bodies, columns are statuses.
//
//	M  modern
//	L  legacy: initialize follows
//	E  an error: the answer says nothing of the era
const verdicts = `
status:              200 202 | 400 404 405 406 410 415 422 | 401 402 403 407 408 409 411 413 414 418 421 425 426 428 429 431 451 | 300 304 | 500 501 502 503 504 507 511
nothing              L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
text                 E   E     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
page                 E   E     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
json                 L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
cut                  L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
discovery            M   M     M   M   M   M   M   M   M     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
legacy-discovery     L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
future-discovery     E   E     E   E   E   E   E   E   E     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
other-result         L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32700               L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32600               L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32600-no-id         L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32000-null-id       L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32601               L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32602               L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32603               L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32020               M   M     M   M   M   M   M   M   M     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32021               M   M     M   M   M   M   M   M   M     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32022-legacy        L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32022-future        E   E     E   E   E   E   E   E   E     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32022-ours          M   M     M   M   M   M   M   M   M     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
-32022-without-data  L   L     L   L   L   L   L   L   L     E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E   E     E   E     E   E   E   E   E   E   E
`

// probeAnswers are the bodies of the table, in which %s is the id.
func probeAnswers() map[string][2]string {
	discovery := func(versions string) [2]string {
		return [2]string{"application/json", `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":[` + versions + `],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}`}
	}
	refusal := func(id string, code int, data string) [2]string {
		return [2]string{"application/json", fmt.Sprintf(`{"jsonrpc":"2.0",%s"error":{"code":%d,"message":"no"%s}}`, id, code, data)}
	}
	const id = `"id":%s,`
	supports := func(versions string) string {
		return `,"data":{"supported":[` + versions + `],"requested":"2026-07-28"}`
	}
	return map[string][2]string{
		"nothing":             {},
		"text":                {"text/plain", "Bad Request: no valid session ID provided"},
		"page":                {"text/html", "<html>"},
		"json":                {"application/json", `{"detail":"Not Found"}`},
		"cut":                 {"application/json", `{"jsonrpc":"2.0","id":%s,"er`},
		"discovery":           discovery(`"2026-07-28","2025-11-25"`),
		"legacy-discovery":    discovery(`"2025-11-25"`),
		"future-discovery":    discovery(`"2031-01-01"`),
		"other-result":        {"application/json", `{"jsonrpc":"2.0","id":%s,"result":{}}`},
		"-32700":              refusal(id, -32700, ""),
		"-32600":              refusal(id, -32600, ""),
		"-32600-no-id":        refusal("", -32600, ""),
		"-32000-null-id":      refusal(`"id":null,`, -32000, ""),
		"-32601":              refusal(id, -32601, ""),
		"-32602":              refusal(id, -32602, ""),
		"-32603":              refusal(id, -32603, ""),
		"-32020":              refusal(id, mcp.CodeHeaderMismatch, ""),
		"-32021":              refusal(id, mcp.CodeMissingCapability, `,"data":{"requiredCapabilities":{}}`),
		"-32022-legacy":       refusal(id, mcp.CodeUnsupportedProtocolVersion, supports(`"2025-06-18","2025-11-25"`)),
		"-32022-future":       refusal(id, mcp.CodeUnsupportedProtocolVersion, supports(`"2031-01-01"`)),
		"-32022-ours":         refusal(id, mcp.CodeUnsupportedProtocolVersion, supports(`"2026-07-28"`)),
		"-32022-without-data": refusal(id, mcp.CodeUnsupportedProtocolVersion, ""),
	}
}

// fieldsOf splits a row of the table.
func fieldsOf(row string) []string {
	return slices.DeleteFunc(strings.Fields(row), func(field string) bool { return field == "|" })
}

func TestVerdicts(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(verdicts), "\n")
	statuses, bodies := fieldsOf(rows[0])[1:], probeAnswers()
	if len(rows)-1 != len(bodies) {
		t.Errorf("the table has %d rows for %d bodies", len(rows)-1, len(bodies))
	}
	for _, row := range rows[1:] {
		fields := fieldsOf(row)
		body, ok := bodies[fields[0]]
		if !ok || len(fields) != len(statuses)+1 {
			t.Fatalf("the row %q has no body, or %d verdicts for %d statuses", fields[0], len(fields)-1, len(statuses))
		}
		t.Run(fields[0], func(t *testing.T) {
			for i, status := range statuses {
				want := fields[i+1]
				if got, err := verdict(t, status, body); got != want {
					t.Errorf("%s: %s, want %s: %v", status, got, want, err)
				}
			}
		})
	}
}

// verdict dials a server that answers the probe with a status and a body, and legacy messages
// properly.
func verdict(t *testing.T, status string, body [2]string) (string, error) {
	t.Helper()
	var code int
	fmt.Sscan(status, &code)
	b := &fakeServer{post: func(w http.ResponseWriter, r *http.Request, m posted) bool {
		if m.Method != mcp.MethodDiscover {
			return false
		}
		answering(code, body[0], body[1])(w, r, m)
		return true
	}}
	known, url := new(transport.Verdicts), b.start(t)
	c, err := dialFake(t, url, "", client.Options{Wire: client.Wire{Verdicts: known}})
	legacy, kept := b.count(mcpwire.MethodInitialize) > 0, known.Lookup(url)
	switch {
	case err == nil && !legacy && kept == mcp.LatestRevision:
		return "M", ping(c)
	case err == nil && legacy && kept == mcp.LatestLegacyRevision:
		return "L", ping(c)
	case err == nil:
		return fmt.Sprintf("ready, and %q is kept", kept), nil
	case !legacy && kept == "":
		return "E", err
	}
	return fmt.Sprintf("an error, and %q is kept", kept), err
}

// The errors of a dial must quote the server.
func TestDialErrors(t *testing.T) {
	for _, test := range []struct {
		status int
		is     func(error) bool
	}{{401, isStatus(401)}, {403, isStatus(403)}, {429, isStatus(429)}, {500, isStatus(500)}, {503, isStatus(503)}} {
		b := &fakeServer{post: func(w http.ResponseWriter, _ *http.Request, _ posted) bool {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(test.status)
			return true
		}}
		_, err := dialFake(t, b.start(t), "", client.Options{})
		var answered *streamable.HTTPError
		if !errors.As(err, &answered) || !test.is(err) || answered.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%d: %v", test.status, err)
		}
		if b.count(mcpwire.MethodInitialize)+b.count("GET") > 0 {
			t.Errorf("%d: it was taken for an older server", test.status)
		}
	}
}

// A session id that is not a valid header value must be refused.
func TestSessionIDs(t *testing.T) {
	for id, ok := range map[string]bool{
		"plain": true, "!~": true, strings.Repeat("x", 3000): true, "": true,
		"a b": false, "a\tb": false, "é": false, "a\x7f": false, "\x80": false,
	} {
		b := &fakeServer{session: id}
		c, err := dialFake(t, b.start(t), mcp.Revision20251125, client.Options{})
		if (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
		if err == nil {
			if _, err := callFake(t, c); err != nil || b.last(mcp.MethodCallTool).Get("Mcp-Session-Id") != id {
				t.Errorf("%q: %v", id, err)
			}
		}
	}
}
