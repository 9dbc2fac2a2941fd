package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/anthropic"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

func serve(t *testing.T, turns ...modelserver.Turn) (*modelserver.Server, anthropic.Options) {
	server := modelserver.New(t.Error, modelserver.Script{Turns: turns}, modelserver.Messages)
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return server, anthropic.Options{Model: "claude-test", BaseURL: web.URL, Retries: -1}
}

func hello() agent.Conversation {
	return agent.Conversation{Messages: []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("Hello.")}}}}
}

func failure(m agent.Model) (err error) {
	for _, err = range m.Reply(context.Background(), hello()) {
	}
	return err
}

// Errors wrap the package's own ones, or the server's.
func TestErrors(t *testing.T) {
	_, o := serve(t, modelserver.Turn{Stop: "refusal"}, modelserver.Turn{Stop: "model_context_window_exceeded"},
		modelserver.Turn{Fail: &modelserver.Failure{Status: 400, Message: "input length and `max_tokens` exceed context limit: 1 + 2 > 2"}},
		modelserver.Turn{Fail: &modelserver.Failure{Status: 429, Message: "prompt is too long for max_tokens of a minute"}})
	m := anthropic.New(o)
	for _, want := range []error{anthropic.ErrRefused, agent.ErrContextLength, agent.ErrContextLength} {
		if err := failure(m); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	err := failure(m)
	if api, ok := errors.AsType[*anthropic.Error](err); !ok || api.Status != 429 || errors.Is(err, agent.ErrContextLength) || !strings.Contains(err.Error(), "wait") {
		t.Errorf("%v", err)
	}
}

// transport fails each request.
type transport struct{ err error }

func (t transport) RoundTrip(*http.Request) (*http.Response, error) { return nil, t.err }

func TestNoServer(t *testing.T) {
	web := httptest.NewServer(nil)
	web.Close()
	unnamed := &http.Client{Transport: transport{&net.DNSError{Err: "no such host", Name: "model.invalid", IsNotFound: true}}}
	for want, o := range map[string]anthropic.Options{
		"nothing answers at " + web.URL + ": is the server running":                 {BaseURL: web.URL},
		"the host of http://model.invalid is not known: check the base URL and the": {BaseURL: "http://model.invalid", HTTPClient: unnamed},
		"the host of https://api.anthropic.com is not known: check the base URL":    {HTTPClient: unnamed},
		"the host of http://****@model.invalid?key=**** is not known":               {BaseURL: "http://me:hush@model.invalid?key=hush-hush", HTTPClient: unnamed},
	} {
		o.Model, o.Retries = "m", -1
		if err := failure(anthropic.New(o)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A server of another protocol gives an error.
func TestOtherServer(t *testing.T) {
	if err := failure(anthropic.New(anthropic.Options{Model: "m", BaseURL: ":", Retries: -1})); err == nil || !strings.Contains(err.Error(), "check the base URL") {
		t.Error(err)
	}
	for _, body := range []string{"<html>", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":7}\n\n"} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		if err := failure(anthropic.New(anthropic.Options{Model: "m", BaseURL: web.URL, Retries: -1, HTTPClient: web.Client()})); err == nil {
			t.Errorf("%q is taken for a reply", body)
		}
		web.Close()
	}
}

// A reply ends when its context ends, with the context's cause, and when its listener leaves.
func TestEnds(t *testing.T) {
	_, o := serve(t, modelserver.Turn{Text: "one two three four five"}, modelserver.Turn{DelayMS: 60_000}, modelserver.Turn{Text: "one two three four five"})
	m := anthropic.New(o)
	for d := range m.Reply(t.Context(), hello()) {
		if d.Text != "" {
			break
		}
	}
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	go cancel(stop)
	var err error
	for _, err = range m.Reply(ctx, hello()) {
	}
	if !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

func TestWindow(t *testing.T) {
	for want, o := range map[int]anthropic.Options{200_000: {}, 0: {BaseURL: "http://localhost"}, 1000: {BaseURL: "http://localhost", Window: 1000}} {
		if got := anthropic.New(o).Window(); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}

// The environment sets neither the key nor the address.
func TestEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-not-mine")
	t.Setenv("ANTHROPIC_BASE_URL", "http://model.invalid")
	server, o := serve(t, modelserver.Turn{Text: "Hello."})
	if err := failure(anthropic.New(o)); err != nil {
		t.Error(err)
	}
	if key := server.Requests()[0].Header.Get("X-Api-Key"); key != "" {
		t.Error(key)
	}
}

// Each rule for a tool's schema, with the schema and the description that are sent.
func TestSchemas(t *testing.T) {
	const said = `The arguments must also be valid against this JSON Schema: `
	for _, tt := range []struct{ name, schema, want, description string }{
		{"none", ``, `{"type":"object"}`, ""},
		{"as it is", `{"type":"object","properties":{"b":{"oneOf":[{"const":1},{"const":12345678901234567890}]},"a":{}},"x-y":null}`, "", ""},
		{"no type", `{"properties":{"a":{}}}`, `{"properties":{"a":{}},"type":"object"}`, ""},
		{"types", `{"type":["object","null"]}`, `{"type":"object"}`, ""},
		{"$schema", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, `{"type":"object"}`, ""},
		{"$ref", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}}`,
			`{"$defs":{"a":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}},"properties":{"x":{"type":"string"}},"required":["x"],"type":"object"}`, ""},
		{"$ref to more", `{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b~1c"},"b/c":{"type":"object","properties":{"x":{}},"additionalProperties":false}}}`,
			`{"additionalProperties":false,"definitions":{"a":{"$ref":"#/definitions/b~1c"},"b/c":{"type":"object","properties":{"x":{}},"additionalProperties":false}},"properties":{"x":{}},"type":"object"}`, ""},
		{"$ref beside others", `{"$ref":"#/$defs/a","properties":{"y":{}},"$defs":{"a":{"properties":{"x":{}},"required":["x"]}}}`,
			`{"$defs":{"a":{"properties":{"x":{}},"required":["x"]}},"properties":{"x":{},"y":{}},"required":["x"],"type":"object"}`, ""},
		{"$ref in circles", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`,
			`{"$defs":{"a":{"$ref":"#/$defs/a"}},"type":"object"}`, said + `{"$ref":"#/$defs/a"}`},
		{"allOf", `{"type":"object","required":["a"],"properties":{"a":{}},"allOf":[{"properties":{"b":{}},"required":["b"]},{"allOf":[{"properties":{"c":{}}}]}]}`,
			`{"properties":{"a":{},"b":{},"c":{}},"required":["a","b"],"type":"object"}`, ""},
		{"allOf that says more", `{"type":"object","allOf":[{"properties":{"b":{}},"minProperties":1}]}`,
			`{"properties":{"b":{}},"type":"object"}`, said + `{"allOf":[{"properties":{"b":{}},"minProperties":1}]}`},
		{"oneOf", `{"type":"object","oneOf":[{"properties":{"kind":{"const":"a"},"a":{}},"required":["kind","a"]},{"properties":{"kind":{"const":"b"}},"required":["kind"]}]}`,
			`{"properties":{"a":{},"kind":{"anyOf":[{"const":"a"},{"const":"b"}]}},"required":["kind"],"type":"object"}`,
			said + `{"oneOf":[{"properties":{"kind":{"const":"a"},"a":{}},"required":["kind","a"]},{"properties":{"kind":{"const":"b"}},"required":["kind"]}]}`},
		{"in circles", `{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"properties":{"x":{}},"allOf":[{"$ref":"#/$defs/a"}]}}}`,
			`{"$defs":{"a":{"properties":{"x":{}},"allOf":[{"$ref":"#/$defs/a"}]}},"properties":{"x":{}},"type":"object"}`, said + `{"allOf":[{"$ref":"#/$defs/a"}]}`},
		{"not an object", `[]`, "its schema is not a JSON object", ""},
		{"null", `null`, "its schema is not a JSON object", ""},
		{"a string", `{"type":"string"}`, `its arguments have to be an object, and are of type "string"`, ""},
		{"a name", `{"type":"object","properties":{"a b":{}}}`, `the name of its parameter "a b" has to be`, ""},
		{"a tuple", `{"type":"object","properties":{"a":{"items":[{}]}}}`, "its schema is not valid in JSON Schema draft 2020-12", ""},
		{"a lost reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`, "its schema is not valid in JSON Schema draft 2020-12", ""},
		{"a far reference", `{"type":"object","properties":{"a":{"$ref":"http://model.invalid/a"}}}`, "its schema is not valid in JSON Schema draft 2020-12", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, o := serve(t, modelserver.Turn{Text: "Hello."}, modelserver.Turn{Text: "Hello."})
			var warnings []string
			o.Warn = func(what string) { warnings = append(warnings, what) }
			m, c := anthropic.New(o), hello()
			c.Tools = []mcp.Tool{{Name: "tool", InputSchema: json.RawMessage(tt.schema)}}
			for range 2 {
				for _, err := range m.Reply(t.Context(), c) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			var sent struct {
				Tools []struct {
					Description string
					InputSchema json.RawMessage `json:"input_schema"`
				}
			}
			if err := json.Unmarshal(server.Requests()[1].Body, &sent); err != nil {
				t.Fatal(err)
			}
			if len(sent.Tools) == 0 {
				if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "the tool tool is left out: "+tt.want) {
					t.Errorf("%q, want %q once", warnings, tt.want)
				}
				return
			}
			want := tt.want
			if want == "" {
				want = tt.schema
			}
			if got := sent.Tools[0]; string(got.InputSchema) != want || got.Description != tt.description || len(warnings) > 0 {
				t.Errorf("got %s\n%s\n%q", got.InputSchema, got.Description, warnings)
			}
		})
	}
}

// The second of two tools with one name is left out, and a changed tool is sent anew.
func TestTools(t *testing.T) {
	server, o := serve(t, modelserver.Turn{Text: "1"}, modelserver.Turn{Text: "2"})
	var warnings []string
	o.Warn = func(what string) { warnings = append(warnings, what) }
	m, c := anthropic.New(o), hello()
	for _, schema := range []string{`{"type":"object","title":"first"}`, `{"type":"object","title":"second"}`} {
		c.Tools = []mcp.Tool{{Name: "a", InputSchema: json.RawMessage(schema)}, {Name: "a", InputSchema: json.RawMessage(schema)}}
		for _, err := range m.Reply(t.Context(), c) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"the tool a is left out the second time: there is another of that name"}; !slices.Equal(warnings, want) {
		t.Errorf("%q", warnings)
	}
	for i, title := range []string{"first", "second"} {
		if body := string(server.Requests()[i].Body); strings.Count(body, title) != 1 {
			t.Error(body)
		}
	}
}
