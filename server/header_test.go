package server_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

func TestHeaders(t *testing.T) {
	s := newServer()
	type inner struct {
		Level int `json:"level,omitzero" header:"Level"`
	}
	server.Tool(s, "t", "", func(context.Context, struct {
		Region string  `json:"region,omitempty" header:"Region"`
		Loud   *bool   `json:"loud" header:"LOUD"`
		Inner  *inner  `json:"inner"`
		Other  float64 `json:"other,omitzero"`
	}) (string, error) {
		return "ok", nil
	})
	ok := textResult("ok")
	mismatch := func(field, problem string) string {
		return "error -32020: Header mismatch: Mcp-Param-" + field + " " + problem
	}
	region := func(v ...string) map[string][]string { return map[string][]string{"Mcp-Param-Region": v} }
	for _, c := range []struct {
		arguments string
		header    map[string][]string
		want      string
	}{
		{`{}`, nil, ok},
		{`{}`, map[string][]string{}, ok},
		{`{}`, map[string][]string{"Mcp-Param-Unknown": {"x"}}, ok},
		{`{"region":"eu"}`, nil, ok}, // not over HTTP
		{`{"region":"eu"}`, region("eu"), ok},
		{`{"region":""}`, region(""), ok},
		{`{"region":"e\u0075"}`, region("eu"), ok},
		{`{"region":"eu"}`, region("EU"), mismatch("Region", "does not match the value in the arguments")},
		{`{"region":"eu"}`, region(), mismatch("Region", "is missing")},
		{`{"region":"eu"}`, map[string][]string{}, mismatch("Region", "is missing")},
		{`{"region":"eu"}`, region("eu", "eu"), mismatch("Region", "occurs more than once")},
		{`{}`, region("eu"), mismatch("Region", "is present, but the arguments have no such value")},
		{`{"region":"Hello"}`, region("=?base64?SGVsbG8=?="), ok},
		{`{"region":"Hello, 世界"}`, region("=?base64?SGVsbG8sIOS4lueVjA==?="), ok},
		{`{"region":" padded "}`, region("=?base64?IHBhZGRlZCA=?="), ok},
		{`{"region":"=?base64?literal?="}`, region("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="), ok},
		{`{"region":"=?base64?SGVsbG8="}`, region("=?base64?SGVsbG8="), ok}, // no end mark: literal
		{`{"region":"SGVsbG8="}`, region("SGVsbG8="), ok},
		{`{"region":"Hello"}`, region("=?base64?SGVsbG8?="), mismatch("Region", "is malformed")},    // no padding
		{`{"region":"Hello"}`, region("=?base64?SGVs!G8=?="), mismatch("Region", "is malformed")},   // no alphabet
		{`{"region":"Hello"}`, region("=?base64?SGVs\nbG8=?="), mismatch("Region", "is malformed")}, // a line break
		{`{"region":"Hello"}`, region("=?BASE64?SGVsbG8=?="), mismatch("Region", "does not match the value in the arguments")},
		{`{"region":"é"}`, region("é"), mismatch("Region", "is malformed")},
		{`{"region":"a\u0001"}`, region("a\x01"), mismatch("Region", "is malformed")},
		{`{"region":"x","loud":true}`, map[string][]string{"Mcp-Param-Region": {"x"}, "Mcp-Param-Loud": {"true"}}, ok},
		{`{"loud":true}`, map[string][]string{"Mcp-Param-Loud": {"True"}}, mismatch("Loud", "does not match the value in the arguments")},
		{`{"inner":{"level":42}}`, map[string][]string{"Mcp-Param-Level": {"42"}}, ok},
		{`{"inner":{"level":42}}`, map[string][]string{"Mcp-Param-Level": {"42.0"}}, ok},
		{`{"inner":{"level":42}}`, map[string][]string{"Mcp-Param-Level": {"43"}}, mismatch("Level", "does not match the value in the arguments")},
		{`{"inner":{"level":42}}`, map[string][]string{"Mcp-Param-Level": {"x"}}, mismatch("Level", "does not match the value in the arguments")},
		{`{"inner":{"level":9007199254740993}}`, map[string][]string{"Mcp-Param-Level": {"9007199254740992"}}, mismatch("Level", "does not match the value in the arguments")},
		{`{"inner":{}}`, map[string][]string{}, ok},
	} {
		req := request(mcp.MethodCallTool, fmt.Sprintf(`{"name":"t","arguments":%s}`, c.arguments))
		req.Header = overHTTP(c.header)
		if got := serve(t, s, req); got != c.want {
			t.Errorf("%s with %v: %s", c.arguments, c.header, got)
		}
		req.Revision = mcp.LatestLegacyRevision // the revision lacks these headers
		if got := serve(t, s, req); got != ok {
			t.Errorf("%s, legacy: %s", c.arguments, got)
		}
	}
	// A value that is mirrored correctly but does not fit the tool is refused in words for the
	// model.
	for arguments, header := range map[string]map[string][]string{
		`{"region":7}`:              region("7"),
		`{"region":7.0}`:            region("7"),
		`{"region":true}`:           region("true"),
		`{"loud":"true"}`:           {"Mcp-Param-Loud": {"true"}},
		`{"inner":{"level":"4 2"}}`: {"Mcp-Param-Level": {"4 2"}},
		`{"inner":{"level":" 42"},"region":"\u00e9"}`: {"Mcp-Param-Level": {"=?base64?IDQy?="}, "Mcp-Param-Region": {"=?base64?w6k=?="}},
	} {
		req := request(mcp.MethodCallTool, `{"name":"t","arguments":`+arguments+`}`)
		req.Header = overHTTP(header)
		if got := serve(t, s, req); !strings.Contains(got, `"isError":true`) {
			t.Errorf("%s with %v: %s", arguments, header, got)
		}
	}
	for arguments, header := range map[string]map[string][]string{
		`{"region":7}`:       region("8"),
		`{"region":true}`:    region("True"),
		`{"loud":"true"}`:    {"Mcp-Param-Loud": {"false"}},
		`{"region":["a"]}`:   region(`["a"]`),
		`{"region":{"a":1}}`: region(`{"a":1}`),
	} {
		req := request(mcp.MethodCallTool, `{"name":"t","arguments":`+arguments+`}`)
		req.Header = overHTTP(header)
		if got := serve(t, s, req); !strings.HasPrefix(got, "error -32020") {
			t.Errorf("%s with %v: %s", arguments, header, got)
		}
	}
	req := request(mcp.MethodCallTool, `{"name":"t","arguments":{"region":null}}`)
	req.Header = overHTTP(map[string][]string{})
	if got := serve(t, s, req); strings.HasPrefix(got, "error -32020") {
		t.Errorf("null is not a value: %s", got)
	}
}

// overHTTP adds the field that Streamable HTTP requires; nil stays nil.
func overHTTP(h map[string][]string) map[string][]string {
	if h == nil {
		return nil
	}
	all := map[string][]string{"Mcp-Method": {mcp.MethodCallTool}}
	maps.Copy(all, h)
	return all
}

// The fields of the request that opens a WebSocket connection mirror no message.
func TestHeadersOfAConnection(t *testing.T) {
	s := newServer()
	server.Tool(s, "t", "", func(context.Context, struct {
		Region string `json:"region" header:"Region"`
	}) (string, error) {
		return "ok", nil
	})
	req := request(mcp.MethodCallTool, `{"name":"t","arguments":{"region":"eu"}}`)
	req.Header = map[string][]string{"Authorization": {"Bearer x"}, "Mcp-Session-Id": {"1"}}
	if got := serve(t, s, req); got != textResult("ok") {
		t.Error(got)
	}
}
