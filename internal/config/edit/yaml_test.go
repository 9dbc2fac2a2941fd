package edit

import (
	"errors"
	"strings"
	"testing"
)

func TestSetYAML(t *testing.T) {
	runEdits(t, YAML, []edited{
		{"empty file", "", p("mcpServers", "dowel"), gateway, `mcpServers:
  dowel:
    command: dowel
    args:
      - up
      - "--stdio"
    env:
      A: "1"
`},
		{"only comments", "# mine", p("a"), 1, "# mine\na: 1"},
		{"only blanks", "# mine\n  ", p("a"), 1, "# mine\na: 1\n"},
		{"marker", "---\n# mine\n", p("a"), "x y", "---\n# mine\na: \"x y\"\n"},
		{"end marker", "---\n...\n", p("a"), true, "---\na: true\n...\n"},
		{"directive", "%YAML 1.2\n---\na: 1\n", p("b"), nil, "%YAML 1.2\n---\na: 1\nb: null\n"},
		{"mark, CRLF", "\ufeffa: 1\r\nb:\r\n  c: 2\r\n", p("b", "d"), obj("e", 3), "\ufeffa: 1\r\nb:\r\n  c: 2\r\n  d:\r\n    e: 3\r\n"},
		{"empty brackets", "a: {} # none\nb: 1\n", p("a", "x"), obj("w", 1), "a: # none\n  x:\n    w: 1\nb: 1\n"},
		{"empty file in brackets", "{}\n", p("a"), 1, "a: 1\n"},
		{"brackets with a comment", "a: { # none\n  }\n", p("a", "x"), 1, "a: { # none\n  x: 1\n}\n"},
		{"left out", "a: # none\nb: 1\n", p("a", "x"), 1, "a: # none\n  x: 1\nb: 1\n"},
		{"left out, scalar", "a:\nb: 1\n", p("a"), 1, "a: 1\nb: 1\n"},
		{"left out at the end", "a:", p("a"), []string{"x"}, "a:\n  - x"},
		{"null in between", "a: ~\n", p("a", "b"), 1, "a:\n  b: 1\n"},
		{"existing", "a: 1 # one\nb: 2\n", p("a"), 3, "a: 3 # one\nb: 2\n"},
		{"existing quotes", "a: \"x\"\nb: 'y'\nc: z\n", p("a"), "new", "a: \"new\"\nb: 'y'\nc: z\n"},
		{"existing single quotes", "a: \"x\"\nb: 'y'\nc: z\n", p("b"), "it's", "a: \"x\"\nb: 'it''s'\nc: z\n"},
		{"what looks like no string", "a: x\n", p("a"), "yes", "a: \"yes\"\n"},
		{"deeper indentation, no break at the end", "a:\n    b:\n        c: 1", p("a", "d"), obj("e", obj("f", 1)), "a:\n    b:\n        c: 1\n    d:\n        e:\n            f: 1"},
		{"lists in the column of the key", "a:\n- x\nb: 1\n", p("c"), []string{"w", "z"}, "a:\n- x\nb: 1\nc:\n- w\n- z\n"},
		{"lists in brackets", "a: [x]\n", p("c"), []string{"w", "z"}, "a: [x]\nc: [w, z]\n"},
		{"list onto list", "a:\n- x # x\n- y\nb: 1\n", p("a"), []string{"z"}, "a:\n- z\nb: 1\n"},
		{"list onto list in brackets", "a:\n  - x\nb: [1, 2] # two\n", p("b"), []int{3}, "a:\n  - x\nb: [3] # two\n"},
		{"scalar onto lines", "a: # lines\n  - x\n  - y\nb: 1\n", p("a"), "z", "a: z # lines\nb: 1\n"},
		{"lines onto a scalar", "a: x # one\nb: 1\n", p("a"), obj("k", "v"), "a: # one\n  k: v\nb: 1\n"},
		{"lines onto a block scalar", "a: |\n  x\n\nb: 1\n", p("a"), obj("k", "v"), "a:\n  k: v\n\nb: 1\n"},
		{"scalar onto a block scalar", "a: >-\n  x\n  y\nb: 1\n", p("a"), "v", "a: v\nb: 1\n"},
		{"object onto list", "a:\n- x\nb: 1\n", p("a"), obj("k", "v"), "a:\n  k: v\nb: 1\n"},
		{"in brackets", "a: {x: 1, y: 2} # c\n", p("a", "z"), obj("k", []int{1}), "a: {x: 1, y: 2, z: {k: [1]}} # c\n"},
		{"in brackets, existing", "a: {x: 1, y: } # c\n", p("a", "y"), "v", "a: {x: 1, y: v } # c\n"},
		{"in brackets, left out", "a: {x: 1, y:}\n", p("a", "y"), "v", "a: {x: 1, y: v}\n"},
		{"in brackets on lines", "a: {\n  x: 1,\n}\n", p("a", "w"), 2, "a: {\n  x: 1,\n  w: 2,\n}\n"},
		{"behind deeper comments", "a:\n  b:\n    c: 1 # c\n    # d: 2\n  # next\ne: 1\n", p("a", "x"), 1, "a:\n  b:\n    c: 1 # c\n    # d: 2\n  x: 1\n  # next\ne: 1\n"},
		{"behind a block scalar", "a:\n  b: |\n    x\n    # no comment\n\nc: 1\n", p("a", "w"), 1, "a:\n  b: |\n    x\n    # no comment\n  w: 1\n\nc: 1\n"},
		{"behind a kept block scalar", "a:\n  b: |+\n    x\n\nc: 1\n", p("a", "w"), 1, "a:\n  b: |+\n    x\n\n  w: 1\nc: 1\n"},
		{"scalar of several lines", "a: x\n  y\n\n  z\nb: \"1\n  2\"\n", p("a"), 1, "a: 1\nb: \"1\n  2\"\n"},
		{"named entry", "mcpServers:\n  - name: x\n    command: a\n", p("mcpServers", "[name=w]"), obj("command", "b", "args", []string{"-y", "p"}),
			"mcpServers:\n  - name: x\n    command: a\n  - name: w\n    command: b\n    args:\n      - \"-y\"\n      - p\n"},
		{"in a named entry", "mcpServers:\n- name: x # x\n  command: a\nz: 1\n", p("mcpServers", "[name=x]", "env", "K"), "v",
			"mcpServers:\n- name: x # x\n  command: a\n  env:\n    K: v\nz: 1\n"},
		{"named entry where none is", "name: c\n", p("mcpServers", "[name=y]", "command"), "b", "name: c\nmcpServers:\n  - name: \"y\"\n    command: b\n"},
		{"named entry in empty brackets", "mcpServers: []\n", p("mcpServers", "[name=x]", "command"), "b", "mcpServers:\n  - name: x\n    command: b\n"},
		{"named entries in brackets", "s: [{name: x}]\n", p("s", "[name=z]"), obj("c", "b"), "s: [{name: x}, {name: z, c: b}]\n"},
		{"objects in lists onto a list", "s:\n  - name: x\n", p("s"), []any{obj("k", "v", "l", []any{}), []any{1, "a"}, 2}, "s:\n  - k: v\n    l: []\n  - [1, a]\n  - 2\n"},
		{"anchors and tags", "a: &x !!str 1\nb: &y\n  c: *x\nd: 1\n", p("b", "e"), 2, "a: &x !!str 1\nb: &y\n  c: *x\n  e: 2\nd: 1\n"},
		{"overriding a merged key", "a: &x\n  k: 1\nb:\n  <<: *x\n", p("b", "l"), 2, "a: &x\n  k: 1\nb:\n  <<: *x\n  l: 2\n"},
		{"quoted keys", "\"a b\": 1\n'c:d': {\"e\":1}\n", p("c:d", "f g"), 2, "\"a b\": 1\n'c:d': {\"e\":1, \"f g\": 2}\n"},
		{"key with a colon", "a:b: 1\nurl: http://x#y # z\n", p("url"), "https://z", "a:b: 1\nurl: https://z # z\n"},
		{"object onto object", "s:\n  # of a\n  a: 1 # one\n  b: 2\n", p("s"), obj("c", 3, "a", 1), "s:\n  # of a\n  a: 1 # one\n  c: 3\n"},
		{"key without a gap at the end", "a: 1\nb:", p("b", "c"), 1, "a: 1\nb:\n  c: 1"},
		{"newline and control characters", "", p("a"), "x\ny\x01\u0085\t\r", "a: \"x\\ny\\u0001\\u0085\\t\\r\"\n"},
	})
}

func TestRemoveYAML(t *testing.T) {
	gone := removed{}
	runEdits(t, YAML, []edited{
		{"first", "a: 1 # one\nb: 2\n", p("a"), gone, "b: 2\n"},
		{"last, no break at the end", "a: 1\nb:\n  c: 1", p("b"), gone, "a: 1"},
		{"with its lines", "a:\n  x: |\n    1\n  y: 2\nb: 1\n", p("a"), gone, "b: 1\n"},
		{"its comments", "# file\na: 1\n\n# other\n\n# of b\n# too\nb:\n  c: 1\n  # d\n# of e\ne: 1\n", p("b"), gone, "# file\na: 1\n\n# other\n\n# of e\ne: 1\n"},
		{"the file's comment stays", "# file\na: 1\nb: 1\n", p("a"), gone, "# file\nb: 1\n"},
		{"comment with another indentation", "s:\n  a: 1\n# note\n  b: 1\n", p("s", "b"), gone, "s:\n  a: 1\n# note\n"},
		{"only", "s: # servers\n  # of a\n  a:\n    x: 1\nb: 1\n", p("s", "a"), gone, "s: {} # servers\nb: 1\n"},
		{"only one of the file", "# file\n\n# of a\na: 1 # one\n", p("a"), gone, "# file\n\n{}\n"},
		{"only of a list", "s:\n- name: x\n  y: 1\nb: 1\n", p("s", "[name=x]"), gone, "s: []\nb: 1\n"},
		{"only of a list, in it", "s:\n- name: x\nb: 1\n", p("s", "[name=x]", "name"), gone, "s:\n- {}\nb: 1\n"},
		{"behind a dash", "s:\n- name: x\n  y: 1\nb: 1\n", p("s", "[name=x]", "name"), gone, "s:\n- y: 1\nb: 1\n"},
		{"named entry", "s:\n  # x\n  - name: x\n    y: 1\n  # z\n  - name: z\n", p("s", "[name=x]"), gone, "s:\n  # z\n  - name: z\n"},
		{"in brackets", "s: {a: 1, b: 2} # c\n", p("s", "b"), gone, "s: {a: 1} # c\n"},
		{"only in brackets", "s: { a: 1 }\n", p("s", "a"), gone, "s: {}\n"},
		{"key alone in brackets", "s: {a, b: 2}\n", p("s", "a"), gone, "s: {b: 2}\n"},
		{"in brackets on lines", "s: {\n  a: 1,\n  # b\n  b: 2 # two\n}\n", p("s", "b"), gone, "s: {\n  a: 1\n}\n"},
		{"behind the marker", "--- {a: 1}\n", p("a"), gone, "--- {}\n"},
		{"nested dashes", "l:\n- - a\n  - b\nk: 1\n", p("k"), gone, "l:\n- - a\n  - b\n"},
		{"CRLF", "a: 1\r\nb: 2\r\n", p("b"), gone, "a: 1\r\n"},
	})
}

func TestUnsafeYAML(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		path []string
		says string
	}{
		"several documents": {"a: 1\n---\nb: 1\n", p("a"), "several documents"},
		"explicit keys":     {"? a\n: 1\n", p("a"), "explicit keys"},
		"in brackets":       {"{? a : 1}\n", p("a"), "explicit keys"},
		"in an alias":       {"a: &x {k: 1}\nb: *x\n", p("b", "k"), "elsewhere"},
		"of an alias":       {"a: &x {k: 1}\nb: *x\n", p("a", "k"), "something else"},
		"merged key":        {"a: &x {k: 1}\nb:\n  <<: *x\n", p("b", "k"), "elsewhere"},
		"key in brackets":   {"[a]: 1\n", p("a"), ""},
		"deep":              {strings.Repeat("[", 1000), p("a"), "deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Set([]byte(tt.in), YAML, tt.path, 2)
			if got != nil || !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
