package config

import (
	"maps"
	"slices"
)

func (e *entry) hide(_ string, n *node) { e.strings("tools.hide", n, &e.s.Tools.Hide) }

// only reads which tools are offered. "*" is all, and so is goose's empty list.
func (e *entry) only(key string, n *node) {
	e.strings("tools.only", n, &e.s.Tools.Only)
	if slices.Contains(e.s.Tools.Only, "*") || key == "available_tools" && len(e.s.Tools.Only) == 0 {
		e.s.Tools.Only = nil
	}
}

// tools reads dowel's object, or a list of the tools that are offered.
func (e *entry) tools(key string, n *node) {
	if n.kind == arrayNode {
		e.only(key, n)
		return
	}
	e.place(key, n)
	if !e.expect(key, n, objectNode) {
		return
	}
	t := &e.s.Tools
	for _, m := range n.members {
		switch m.key.text {
		case "only":
			e.only("tools.only", m.value)
		case "hide":
			e.hide("tools.hide", m.value)
		case "rename":
			e.stringMap("tools.rename", m.value, &t.Rename)
		case "describe":
			e.stringMap("tools.describe", m.value, &t.Describe)
		default:
			e.unknown("tools."+m.key.text, m.key.at, choose(m.key.text, []string{"only", "hide", "rename", "describe"}), "the key means nothing to dowel")
		}
	}
}

// settleTools checks that no two tools get one name.
func (e *entry) settleTools() {
	taken := map[string]string{}
	for _, old := range slices.Sorted(maps.Keys(e.s.Tools.Rename)) {
		now := e.s.Tools.Rename[old]
		at := e.s.Where("tools.rename." + old)
		switch other, twice := taken[now]; {
		case now == "":
			e.errorf(at, "write the new name, or remove the line", "tools.rename.%s is empty", old)
		case twice:
			e.errorf(at, "choose another name", "tools.rename gives %s and %s the same name %q", other, old, now)
		}
		taken[now] = old
	}
}
