package mcpwire_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/wiretest"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestMissingCapabilities(t *testing.T) {
	for _, tt := range []struct{ have, want, missing string }{
		{`{}`, `{}`, ``}, {`{"roots":{}}`, `{}`, ``},
		{`{}`, `{"roots":{}}`, `{"roots":{}}`}, {`{"roots":{}}`, `{"roots":{}}`, ``}, {`{"roots":{"listChanged":true}}`, `{"roots":{}}`, ``},
		{`{}`, `{"sampling":{}}`, `{"sampling":{}}`}, {`{"sampling":{}}`, `{"sampling":{}}`, ``}, {`{"sampling":{}}`, `{"sampling":{"tools":{}}}`, `{"sampling":{"tools":{}}}`},
		{`{"sampling":{"tools":{}}}`, `{"sampling":{"tools":{}}}`, ``}, {`{"sampling":{"tools":{}}}`, `{"sampling":{"context":{}}}`, `{"sampling":{"context":{}}}`},
		{`{"sampling":{"tools":{}}}`, `{"sampling":{}}`, ``}, {`{"sampling":{"context":{}}}`, `{"sampling":{"context":{},"tools":{}}}`, `{"sampling":{"tools":{}}}`},
		{`{"sampling":{"tools":{},"context":{}}}`, `{"sampling":{"context":{},"tools":{}}}`, ``}, {`{"sampling":{}}`, `{"sampling":{"tools":{},"context":{}}}`, `{"sampling":{"tools":{},"context":{}}}`},
		{`{}`, `{"elicitation":{}}`, `{"elicitation":{}}`}, {`{}`, `{"elicitation":{"form":{}}}`, `{"elicitation":{"form":{}}}`}, {`{}`, `{"elicitation":{"url":{}}}`, `{"elicitation":{"url":{}}}`},
		{`{"elicitation":{}}`, `{"elicitation":{}}`, ``}, {`{"elicitation":{}}`, `{"elicitation":{"form":{}}}`, ``}, {`{"elicitation":{}}`, `{"elicitation":{"url":{}}}`, `{"elicitation":{"url":{}}}`},
		{`{"elicitation":{"form":{}}}`, `{"elicitation":{}}`, ``}, {`{"elicitation":{"form":{}}}`, `{"elicitation":{"url":{}}}`, `{"elicitation":{"url":{}}}`},
		{`{"elicitation":{"url":{}}}`, `{"elicitation":{}}`, `{"elicitation":{}}`}, {`{"elicitation":{"url":{}}}`, `{"elicitation":{"form":{}}}`, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{"url":{}}}`, `{"elicitation":{"url":{}}}`, ``}, {`{"elicitation":{"url":{}}}`, `{"elicitation":{"form":{},"url":{}}}`, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{}}`, `{"elicitation":{"form":{},"url":{}}}`, `{"elicitation":{"url":{}}}`},
		{`{"elicitation":{"form":{},"url":{}}}`, `{"elicitation":{"form":{},"url":{}}}`, ``},
		{`{}`, `{"extensions":{"a/b":{}}}`, `{"extensions":{"a/b":{}}}`}, {`{"extensions":{"a/b":{"x":1}}}`, `{"extensions":{"a/b":{}}}`, ``},
		{`{"extensions":{"a/b":{}}}`, `{"extensions":{"a/b":{},"a/c":{"y":1}}}`, `{"extensions":{"a/c":{"y":1}}}`},
		{`{"roots":{}}`, `{"roots":{},"sampling":{},"elicitation":{}}`, `{"sampling":{},"elicitation":{}}`},
	} {
		var have, want mcp.ClientCapabilities
		if err := errors.Join(mcp.Decode([]byte(tt.have), &have), mcp.Decode([]byte(tt.want), &want)); err != nil {
			t.Fatal(err)
		}
		missing, any := mcpwire.MissingCapabilities(have, want)
		got := ""
		if raw, err := mcp.Encode(missing); err != nil {
			t.Error(err)
		} else if any {
			got = string(raw)
		}
		if got != tt.missing || !any && !reflect.DeepEqual(missing, mcp.ClientCapabilities{}) {
			t.Errorf("%s lacks %s (%v) of %s, want %s", tt.have, got, any, tt.want, tt.missing)
		}
	}
}

func TestErrorsFitTheSchema(t *testing.T) {
	v, err := wiretest.For(string(mcp.LatestRevision))
	if err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]*mcp.Error{
		"UnsupportedProtocolVersionError":      mcpwire.UnsupportedVersion("1900-01-01", mcp.Revisions()),
		"MissingRequiredClientCapabilityError": mcpwire.MissingCapability(&mcp.CapabilityError{Required: mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{URL: &struct{}{}}}}),
	} {
		frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":%q,"data":%s}}`, e.Code, e.Message, e.Data)
		if err := v.Definition(want, []byte(frame)); err != nil {
			t.Error(err)
		}
	}
	if got := mcpwire.UnsupportedVersion("1.0", []mcp.Revision{mcp.Revision20251125}); string(got.Data) != `{"supported":["2025-11-25"],"requested":"1.0"}` {
		t.Errorf("data %s", got.Data)
	}
}
