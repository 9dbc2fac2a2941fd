package gateway_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// post sends a modern request with header fields of its own.
func post(t *testing.T, url, body string, fields ...string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(out)
}

// Header fields are compared with the offered tool for upstreams without header fields.
func TestParamHeaders(t *testing.T) {
	g, _ := over(t, hub.Definition{Name: "up", Target: child("upstream")})
	web := serveHTTP(t, g)
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__test_x_mcp_header","arguments":{"region":"eu"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	always := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "up__test_x_mcp_header"}
	for _, tt := range []struct {
		name   string
		fields []string
		status int
		want   string
	}{
		{"as it is", []string{"Mcp-Param-Region", "eu"}, http.StatusOK, `region \"eu\"`},
		{"another value", []string{"Mcp-Param-Region", "us"}, http.StatusBadRequest, "-32020"},
		{"none", nil, http.StatusBadRequest, "-32020"},
		{"twice", []string{"Mcp-Param-Region", "eu", "Mcp-Param-Region", "eu"}, http.StatusBadRequest, "-32020"},
	} {
		status, answer := post(t, web.URL+"/mcp", body, append(slices.Clone(always), tt.fields...)...)
		if status != tt.status || !strings.Contains(answer, tt.want) {
			t.Errorf("%s: %d %s", tt.name, status, answer)
		}
	}
	got, err := client.Call[string](t.Context(), dialListed(t, web.URL+"/mcp"), "up__test_x_mcp_header", map[string]string{"region": "eu"})
	if err != nil || !strings.Contains(got, `region "eu"`) {
		t.Errorf("%s, %v", got, err)
	}
}

// dialListed returns a client that has read the tools, and knows which arguments are mirrored.
func dialListed(t *testing.T, url string) *client.Client {
	c := dial(t, url, client.Options{Wire: client.Wire{Revision: mcp.LatestRevision, Verdicts: new(transport.Verdicts)}})
	tools(t, c)
	return c
}

// A tool with broken marks for header fields works without them.
func TestBrokenParamHeaders(t *testing.T) {
	var got string
	g, _ := over(t, hub.Definition{Name: "up", Target: raw(`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a token"},"b":{"type":"string","x-mcp-header":"B"}}}}`,
		`{"content":[{"type":"text","text":"ok"}]}`, &got)})
	web := serveHTTP(t, g)
	c := dialListed(t, web.URL+"/mcp")
	resp, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListTools})
	if err != nil || !strings.Contains(string(resp.Raw), `"up__t"`) || strings.Contains(string(resp.Raw), "x-mcp-header") {
		t.Errorf("%s, %v", resp.Raw, err)
	}
	if text, err := client.Call[string](t.Context(), c, "up__t", map[string]string{"a": "x", "b": "y"}); err != nil || text != "ok" || got != `{"a":"x","b":"y"}` {
		t.Errorf("%s, %s, %v", text, got, err)
	}
}

// An HTTP upstream gets the header fields of its own tools, independent of the client's.
func TestParamHeadersOfUpstream(t *testing.T) {
	fields := make(chan http.Header, 100)
	up := serveHTTP(t, newUpstream())
	passing := func(r *http.Request) { fields <- r.Header.Clone() }
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: streamable.URL{URL: up.URL + "/mcp", Client: &http.Client{Transport: spying{passing}}}})
	settle(t, h)
	g := gatewayOf(t, h, gateway.Options{})
	c := dial(t, g, client.Options{}) // of no header fields at all
	if _, err := client.Call[string](t.Context(), c, "up__test_x_mcp_header", map[string]string{"region": "eu"}); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case f := <-fields:
			if f.Get("Mcp-Method") == mcp.MethodCallTool {
				if f.Get("Mcp-Name") != "test_x_mcp_header" || f.Get("Mcp-Param-Region") != "eu" {
					t.Errorf("%v", f)
				}
				return
			}
		default:
			t.Fatal("there was no call")
		}
	}
}

// A field Mcp-Param-… that the gateway does not know reaches an HTTP upstream. Other fields do not.
func TestUnknownParamHeaders(t *testing.T) {
	var mu sync.Mutex
	var seen []http.Header
	up := serveHTTP(t, newUpstream())
	passing := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Mcp-Method") == mcp.MethodCallTool {
			seen = append(seen, r.Header.Clone())
		}
	}
	h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: streamable.URL{URL: up.URL + "/mcp", Client: &http.Client{Transport: spying{passing}}}})
	settle(t, h)
	web := serveHTTP(t, gatewayOf(t, h, gateway.Options{}))
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__test_x_mcp_header","arguments":{"region":"eu"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	status, answer := post(t, web.URL+"/mcp", body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "up__test_x_mcp_header",
		"Mcp-Param-Region", "eu", "Mcp-Param-Tenant", "=?base64?w6k=?=", "Authorization", "Bearer secret", "X-Own", "1")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 || seen[0].Get("Mcp-Param-Tenant") != "=?base64?w6k=?=" || len(seen[0]["Mcp-Param-Region"]) != 1 || seen[0].Get("Mcp-Param-Region") != "eu" ||
		seen[0].Get("Authorization") != "" || seen[0].Get("X-Own") != "" {
		t.Errorf("the upstream saw %v", seen)
	}
}

// spying shows requests.
type spying struct{ show func(*http.Request) }

func (s spying) RoundTrip(r *http.Request) (*http.Response, error) {
	s.show(r)
	return http.DefaultTransport.RoundTrip(r)
}
