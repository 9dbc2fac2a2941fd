package edit

import (
	"errors"
	"strings"
	"testing"
)

func TestSetTOML(t *testing.T) {
	runEdits(t, TOML, []edited{
		{"empty file", "", p("mcp_servers", "dowel"), gateway, "[mcp_servers.dowel]\ncommand = \"dowel\"\nargs = [\"up\", \"--stdio\"]\nenv = { A = \"1\" }\n"},
		{"only comments", "# mine\n", p("a"), obj("b", 1), "# mine\n\n[a]\nb = 1\n"},
		{"only comments, no break", "# mine", p("a", "b"), 1, "# mine\n\n[a]\nb = 1"},
		{"scalar into an empty file", "", p("a"), "x", "a = \"x\"\n"},
		{"mark, CRLF", "\ufeff[a]\r\nx = 1\r\n", p("a", "y"), []string{"z"}, "\ufeff[a]\r\nx = 1\r\ny = [\"z\"]\r\n"},
		{"existing", "a = 1 # one\n[b]\na = 2\n", p("b", "a"), 3, "a = 1 # one\n[b]\na = 3\n"},
		{"another type", "a = 1 # one\n", p("a"), 1.5, "a = 1.5 # one\n"},
		{"whole float", "", p("a"), 2.0, "a = 2.0\n"},
		{"date", "a = 1979-05-27\n", p("a"), Literal("1979-05-28"), "a = 1979-05-28\n"},
		{"first at the top", "# file\n\n# of a\n[a]\nx = 1\n", p("b"), 1, "# file\n\nb = 1\n\n# of a\n[a]\nx = 1\n"},
		{"last at the top", "a = 1\n# x\n\n[t]\n", p("b"), true, "a = 1\nb = true\n# x\n\n[t]\n"},
		{"behind the sibling", "[s.a]\nx = 1 # one\n# y = 2\n\n# of z\n[z]\nk = 1\n", p("s", "b"), obj("x", 2), "[s.a]\nx = 1 # one\n# y = 2\n\n[s.b]\nx = 2\n\n# of z\n[z]\nk = 1\n"},
		{"behind the sibling's tables", "[s.a]\nx = 1\n[s.a.env]\nK = 1\n[z]\n", p("s", "b"), obj("x", 2), "[s.a]\nx = 1\n[s.a.env]\nK = 1\n\n[s.b]\nx = 2\n[z]\n"},
		{"comment of the next one", "[s.a]\nx = 1\n# of z\n[z]\n", p("s", "b"), obj("x", 2), "[s.a]\nx = 1\n\n[s.b]\nx = 2\n# of z\n[z]\n"},
		{"no break at the end", "[s.a]\nx = 1", p("s", "b"), obj("x", 2), "[s.a]\nx = 1\n\n[s.b]\nx = 2"},
		{"quoted keys", "[s.\"a b\"]\nx = 1\n", p("s", "c.d"), obj("e f", obj("", 1)), "[s.\"a b\"]\nx = 1\n\n[s.\"c.d\".\"e f\"]\n\"\" = 1\n"},
		{"siblings in braces", "[s]\na = { x = 1 }\n\n[z]\n", p("s", "b"), obj("x", 2, "y", []int{1}), "[s]\na = { x = 1 }\nb = { x = 2, y = [1] }\n\n[z]\n"},
		{"siblings with dots", "[s]\na.x = 1\n", p("s", "b"), obj("x", 2), "[s]\na.x = 1\nb = { x = 2 }\n"},
		{"into a table with dots", "[s]\na.x = 1\nc = 1\n", p("s", "a", "y"), obj("z", 2), "[s]\na.x = 1\na.y = { z = 2 }\nc = 1\n"},
		{"in braces", "s = { a = { x = 1 }, b = {} } # c\n", p("s", "a", "y"), 2, "s = { a = { x = 1, y = 2 }, b = {} } # c\n"},
		{"in empty braces", "s = { a = { x = 1 }, b = {} } # c\n", p("s", "b", "y"), 2, "s = { a = { x = 1 }, b = { y = 2 } } # c\n"},
		{"table that has only subtables", "[s.a.env]\nx = 1\n", p("s", "a", "y"), 2, "[s.a.env]\nx = 1\n\n[s.a]\ny = 2\n"},
		{"several tables", "", p("s"), obj("a", obj("x", 1), "b", obj("y", obj("z", 1), "w", 2), "c", obj()), "[s.a]\nx = 1\n\n[s.b]\ny = { z = 1 }\nw = 2\n\n[s.c]\n"},
		{"indented", "[s]\n  a = 1\n", p("s", "b"), 2, "[s]\n  a = 1\n  b = 2\n"},
		{"header alone", "[s]\n\n[t]\n", p("s", "b"), 2, "[s]\nb = 2\n\n[t]\n"},
		{"lists of lines", "a = [\n    1, # one\n    2,\n]\n", p("b"), []int{3, 4}, "a = [\n    1, # one\n    2,\n]\nb = [\n    3,\n    4,\n]\n"},
		{"list onto list", "a = [\n    1,\n]\nb = [ 2 ]\n", p("b"), []int{3, 4}, "a = [\n    1,\n]\nb = [3, 4]\n"},
		{"named entry", "[[mcp_servers]]\nname = \"x\"\n[mcp_servers.env]\nK = 1\n\n[other]\n", p("mcp_servers", "[name=y]"), obj("command", "c", "env", obj("A", "1")),
			"[[mcp_servers]]\nname = \"x\"\n[mcp_servers.env]\nK = 1\n\n[[mcp_servers]]\nname = \"y\"\ncommand = \"c\"\nenv = { A = \"1\" }\n\n[other]\n"},
		{"first named entry", "a = 1\n", p("mcp_servers", "[name=y]", "command"), "c", "a = 1\n\n[[mcp_servers]]\nname = \"y\"\ncommand = \"c\"\n"},
		{"named entry into an empty list", "a = 1\nmcp_servers = []\n", p("mcp_servers", "[name=y]"), obj("command", "c"), "a = 1\nmcp_servers = [{ name = \"y\", command = \"c\" }]\n"},
		{"in a named entry", "[[s]]\nname = \"x\"\n[[s]]\nname = \"y\"\n", p("s", "[name=x]", "env", "K"), 1, "[[s]]\nname = \"x\"\nenv = { K = 1 }\n[[s]]\nname = \"y\"\n"},
		{"in a named entry's table", "[[s]]\nname = \"x\"\n[s.env]\n[[s]]\nname = \"y\"\n[s.env]\n", p("s", "[name=x]", "env", "K"), 1, "[[s]]\nname = \"x\"\n[s.env]\nK = 1\n[[s]]\nname = \"y\"\n[s.env]\n"},
		{"object onto table", "[s]\n# x\nx = 1 # one\ny = 2\n[s.t]\nz = 1\n", p("s"), obj("x", 1, "w", 3), "[s]\n# x\nx = 1 # one\nw = 3\n"},
		{"scalar onto table", "a = 1\n\n[s]\nx = 1\n\n[z]\n", p("s"), "v", "a = 1\ns = \"v\"\n\n[z]\n"},
		{"object onto scalar", "s = 1 # c\n", p("s"), obj("x", "y"), "s = { x = \"y\" } # c\n"},
		{"list onto array of tables", "[[s]]\nname = \"x\"\n", p("s"), []string{"y"}, "s = [\"y\"]\n"},
		{"strings of several lines", "a = \"\"\"\n[x]\n\"\"\"\"\"\nb = '''it's'''\n\"c\\\"d\" = '\\'\n", p("b"), "a\x7f\n", "a = \"\"\"\n[x]\n\"\"\"\"\"\nb = \"a\\u007f\\n\"\n\"c\\\"d\" = '\\'\n"},
		{"spaces in headers", "[ s . \"a\" ] # c\nx = 1\n", p("s", "a", "y"), 1, "[ s . \"a\" ] # c\nx = 1\ny = 1\n"},
	})
}

func TestRemoveTOML(t *testing.T) {
	gone := removed{}
	const three = "a = 1\n\n# of s.a\n[s.a] # a\nx = 1\n# y = 1\n\n# other\n\n[s.b]\nx = 2\n\n[s.c]\nx = 3\n"
	runEdits(t, TOML, []edited{
		{"assignment", "a = 1\n# of b\nb = 2 # two\n\nc = 3\n", p("b"), gone, "a = 1\n\nc = 3\n"},
		{"last one, no break", "a = 1\nb = 2", p("b"), gone, "a = 1"},
		{"first table", three, p("s", "a"), gone, "a = 1\n\n# other\n\n[s.b]\nx = 2\n\n[s.c]\nx = 3\n"},
		{"table", three, p("s", "b"), gone, "a = 1\n\n# of s.a\n[s.a] # a\nx = 1\n# y = 1\n\n# other\n\n[s.c]\nx = 3\n"},
		{"last table", three, p("s", "c"), gone, "a = 1\n\n# of s.a\n[s.a] # a\nx = 1\n# y = 1\n\n# other\n\n[s.b]\nx = 2\n"},
		{"last table, no break", "a = 1\n\n[s]\nx = 1", p("s"), gone, "a = 1"},
		{"only table", "[s.a]\nx = 1\n", p("s", "a"), gone, ""},
		{"only one in a table", "[s]\nx = 1\n", p("s", "x"), gone, "[s]\n"},
		{"tables in several places", "[s.a]\nx = 1\n[z]\n[s.a.env]\ny = 1\n[s]\nb = 1\n", p("s", "a"), gone, "[z]\n[s]\nb = 1\n"},
		{"all tables", three, p("s"), gone, "a = 1\n"},
		{"dots", "s.a.x = 1\ns.b = 2\ns.a.y = 3\n", p("s", "a"), gone, "s.b = 2\n"},
		{"in braces", "s = { a = 1, b = 2 }\n", p("s", "b"), gone, "s = { a = 1 }\n"},
		{"only in braces", "s = { a = 1 }\n", p("s", "a"), gone, "s = {}\n"},
		{"named entry", "[[s]]\nname = \"x\"\n[s.env]\ny = 1\n\n[[s]]\nname = \"z\"\n", p("s", "[name=x]"), gone, "[[s]]\nname = \"z\"\n"},
		{"only named entry", "a = 1\n\n[[s]]\nname = \"x\"\n", p("s", "[name=x]"), gone, "a = 1\n"},
		{"named entry in brackets", "s = [\n  { name = \"x\" }, # x\n  { name = \"y\" }, # y\n]\n", p("s", "[name=y]"), gone, "s = [\n  { name = \"x\" }, # x\n]\n"},
		{"array of tables", "[[s]]\nname = \"x\"\n[[s]]\nname = \"y\"\n[t]\n", p("s"), gone, "[t]\n"},
	})
}

func TestUnsafeTOML(t *testing.T) {
	for name, tt := range map[string]struct {
		in    string
		path  []string
		value any
		says  string
	}{
		"null":               {"", p("a"), nil, "no null"},
		"null within":        {"", p("a"), []any{obj("b", nil)}, "no null"},
		"dots in braces":     {"s = { a.b = 1, a.c = 2 }\n", p("s", "a", "b"), 2, "elsewhere"},
		"too many levels":    {"a = " + strings.Repeat("[", 500) + strings.Repeat("]", 500), p("b"), 1, ""},
		"in a scalar":        {"a = 1\n", p("a", "b"), 1, "neither"},
		"no entry of a list": {"a = [1]\n", p("a", "b"), 1, "[name=…]"},
		"not valid":          {"a = \n", p("b"), 1, "not valid TOML"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Set([]byte(tt.in), TOML, tt.path, tt.value)
			if got != nil || err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if _, err := Remove([]byte("s = { a.b = 1, a.c = 2 }\n"), TOML, p("s", "a")); !errors.Is(err, ErrUnsafe) {
		t.Errorf("half of it removed: %v", err)
	}
}
