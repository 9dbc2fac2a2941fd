package config

import (
	"maps"
	"slices"
)

func (e *entryReader) readHiddenTools(_ string, n *node) {
	e.readStrings("tools.hide", n, &e.s.Tools.Hide)
}

// readOnlyTools reads the list of tools to offer. "*" means all, and so does goose's empty list.
func (e *entryReader) readOnlyTools(key string, n *node) {
	e.readStrings("tools.only", n, &e.s.Tools.Only)
	if slices.Contains(e.s.Tools.Only, "*") || key == "available_tools" && len(e.s.Tools.Only) == 0 {
		e.s.Tools.Only = nil
	}
}

// readTools reads dowel's object, or a list of the tools to offer.
func (e *entryReader) readTools(key string, n *node) {
	if n.kind == arrayNode {
		e.readOnlyTools(key, n)
		return
	}
	e.recordPosition(key, n)
	if !e.expectKind(key, n, objectNode) {
		return
	}
	t := &e.s.Tools
	for _, m := range n.members {
		switch m.key.text {
		case "only":
			e.readOnlyTools("tools.only", m.value)
		case "hide":
			e.readHiddenTools("tools.hide", m.value)
		case "rename":
			e.readStringMap("tools.rename", m.value, &t.Rename)
		case "describe":
			e.readStringMap("tools.describe", m.value, &t.Describe)
		default:
			e.addUnknown("tools."+m.key.text, m.key.at, suggestOrList(m.key.text, []string{"only", "hide", "rename", "describe"}), "dowel does not know this key")
		}
	}
}

// checkToolNames checks that renaming gives no two tools the same name.
func (e *entryReader) checkToolNames() {
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
