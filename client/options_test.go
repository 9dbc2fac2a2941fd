package client_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// The client also declares Answers.Capabilities.
func TestCapabilitiesAreAdded(t *testing.T) {
	sample := func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, nil }
	withContext := mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{Context: &struct{}{}}}
	for _, test := range []struct {
		name           string
		opts           client.Options
		modern, legacy string
	}{
		{"nothing", client.Options{}, `{}`, `{}`},
		{"sampling", client.Options{Answers: client.Answers{Sample: sample, SampleTools: true}}, `{"sampling":{"tools":{}}}`, `{"sampling":{"tools":{}}}`},
		{"sampling with context", client.Options{Answers: client.Answers{Sample: sample, Capabilities: withContext}}, `{"sampling":{"context":{}}}`, `{"sampling":{"context":{}}}`},
		{"sampling with both", client.Options{Answers: client.Answers{Sample: sample, SampleTools: true, Capabilities: withContext}}, `{"sampling":{"tools":{},"context":{}}}`, `{"sampling":{"tools":{},"context":{}}}`},
		{"elicitation", client.Options{Answers: client.Answers{Elicit: accept(`{}`), Capabilities: mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{URL: &struct{}{}}}}},
			`{"elicitation":{"form":{},"url":{}}}`, `{"elicitation":{"form":{},"url":{}}}`},
		{"extensions", client.Options{Extensions: []mcp.Extension{{ID: "a/b"}, {ID: "c/d"}}, Answers: client.Answers{Capabilities: mcp.ClientCapabilities{Extensions: map[string]json.RawMessage{"c/d": json.RawMessage(`{"x":1}`)}}}},
			`{"extensions":{"a/b":{},"c/d":{"x":1}}}`, `{"extensions":{"a/b":{},"c/d":{"x":1}}}`},
		{"roots", client.Options{Answers: client.Answers{Roots: client.FixedRoots()}}, `{"roots":{}}`, `{"roots":{"listChanged":true}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eras(t, func(t *testing.T, revision mcp.Revision) {
				want := test.modern
				if !revision.Modern() {
					want = test.legacy
				}
				opts, got := test.opts, ""
				opts.Wire.Revision = revision
				c := connect(t, tools(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
					got = string(req.ClientCapabilities)
					return raw(done), nil
				}), opts)
				if _, err := client.Call[string](context.Background(), c, "t", nil); err != nil || got != want {
					t.Errorf("declared %s, %v; want %s", got, err, want)
				}
			})
		})
	}
}

// A pin that means nothing is refused before anything is started.
func TestPinOnAnUnknownRevision(t *testing.T) {
	for _, pin := range []mcp.Revision{"2027-01-01", "foo", "2024-11-06"} {
		l := &fakeDialer{handler: handlers{}}
		_, err := client.Dial(context.Background(), l, &client.Options{Wire: client.Wire{Revision: pin}})
		if err == nil || !strings.Contains(err.Error(), `"`+string(pin)+`" is pinned, and dowel speaks [2026-07-28 `) || l.count() != 0 {
			t.Errorf("%s: %v after %d dials", pin, err, l.count())
		}
	}
}

// A server is asked for progress where that makes a difference, and for no more.
func TestProgressTokens(t *testing.T) {
	onLog, onProgress := func(mcp.LoggingMessageParams) {}, func(mcp.ProgressParams) {}
	for _, test := range []struct {
		name  string
		opts  client.Options
		call  client.CallOptions
		token bool
	}{
		{"nobody", client.Options{}, client.CallOptions{}, false},
		{"the client's log", client.Options{OnLog: onLog}, client.CallOptions{}, false},
		{"the call's log", client.Options{}, client.CallOptions{OnLog: onLog}, false},
		{"progress", client.Options{}, client.CallOptions{OnProgress: onProgress}, true},
		{"both", client.Options{OnLog: onLog}, client.CallOptions{OnProgress: onProgress}, true},
		{"a limit on silence", client.Options{Limits: client.Limits{Idle: time.Minute}}, client.CallOptions{}, true},
		{"a limit on silence, and not for this call", client.Options{Limits: client.Limits{Idle: time.Minute}, OnLog: onLog}, client.CallOptions{Limits: client.Limits{Idle: -1}}, false},
		{"another limit", client.Options{Limits: client.Limits{Total: time.Minute}, OnLog: onLog}, client.CallOptions{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			eras(t, func(t *testing.T, revision mcp.Revision) {
				token := ""
				test.opts.Wire.Revision = revision
				c := connect(t, tools(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
					token = string(req.ProgressToken)
					return raw(done), nil
				}), test.opts)
				if _, err := client.Call[string](context.Background(), c, "t", nil, test.call); err != nil || (token != "") != test.token {
					t.Errorf("the token is %q, %v", token, err)
				}
			})
		})
	}
}

// Start is the limit for commands, Connect for all other targets.
func TestStartLimit(t *testing.T) {
	silent := func(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := client.Dial(t.Context(), handlers{mcp.MethodDiscover: silent}, &client.Options{Limits: client.Limits{Connect: time.Second, Start: time.Minute}, Wire: client.Wire{Tap: mcptest.ClientTap(t, mcptest.SentOnly())}})
		mustBe(t, err, context.DeadlineExceeded)
		if took := time.Since(began); took != time.Second {
			t.Errorf("connecting took %v", took)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	silentServer := stdio.Command{Path: self, Env: map[string]string{"DOWEL_TEST_SILENT": "1"}}
	for start := 100 * time.Millisecond; ; start *= 2 { // a busy machine needs more time to start the child
		limits := client.Limits{Connect: time.Hour, Start: start}
		_, err = client.Dial(t.Context(), silentServer, &client.Options{Limits: limits, Wire: client.Wire{Tap: mcptest.ClientTap(t, mcptest.SentOnly())}})
		mustBe(t, err, context.DeadlineExceeded)
		if strings.Contains(err.Error(), "a silent server") {
			return
		}
		if start > time.Minute {
			t.Fatalf("the error lacks the server's stderr: %v", err)
		}
	}
}
