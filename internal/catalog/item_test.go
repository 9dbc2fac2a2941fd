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

// The member execution belongs to 2025-11-25, and reaches no client of another revision.
func TestTaskSupport(t *testing.T) {
	for _, support := range []string{"forbidden", "optional", "required"} {
		raw := []byte(`{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"` + support + `"}}`)
		item, reason := NewItem(namedUpstream("up"), Tool, raw, keepTool)
		if reason != "" || item.TaskSupport != support || strings.Contains(string(item.Definition)+string(item.LocalDefinition), "execution") {
			t.Errorf("%s: %q, %+v", support, reason, item)
		}
	}
}
