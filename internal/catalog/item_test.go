package catalog

import (
	"strings"
	"testing"
)

// A definition that clients cannot read is left out alone.
func TestDeepDefinition(t *testing.T) {
	define := func(depth int) []byte {
		return []byte(`{"name":"deep","inputSchema":{"type":"object","not":` + strings.Repeat(`{"not":`, depth-2) + `true` + strings.Repeat(`}`, depth-2) + `}}`)
	}
	for depth, want := range map[int]string{maxItemDepth: "", maxItemDepth + 1: "it is nested 121 levels deep, and clients read at most 120", 400: "it is nested 400 levels deep, and clients read at most 120"} {
		if _, reason := NewItem(namedUpstream("up"), Tool, define(depth), keepTool); reason != want {
			t.Errorf("%d: %q", depth, reason)
		}
	}
}

// A tool that can only be called as a task would fail at each call (2025-11-25, server/tools).
func TestToolThatRequiresTasks(t *testing.T) {
	for support, want := range map[string]bool{"forbidden": true, "optional": true, "required": false} {
		raw := []byte(`{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"` + support + `"}}`)
		if _, reason := NewItem(namedUpstream("up"), Tool, raw, keepTool); (reason == "") != want {
			t.Errorf("%s: %q", support, reason)
		}
	}
}
