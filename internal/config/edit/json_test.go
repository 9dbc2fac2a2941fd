package edit

import (
	"testing"
)

func obj(pairs ...any) Object {
	var result Object
	for i := 0; i < len(pairs); i += 2 {
		result = append(result, Member{pairs[i].(string), pairs[i+1]})
	}
	return result
}

type edited struct {
	name  string
	in    string
	path  []string
	value any // removed{} removes
	want  string
}

type removed struct{}

func runEdits(t *testing.T, f Format, tests []edited) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []byte
			var err error
			if _, ok := tt.value.(removed); ok {
				got, err = Remove([]byte(tt.in), f, tt.path)
			} else {
				got, err = Set([]byte(tt.in), f, tt.path, tt.value)
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s\n(%q)", got, tt.want, got)
			}
		})
	}
}

func p(elements ...string) []string { return elements }

var gateway = obj("command", "dowel", "args", []string{"up", "--stdio"}, "env", obj("A", "1"))

func TestSetJSON(t *testing.T) {
	runEdits(t, JSON, []edited{
		{"empty file", "", p("mcpServers", "dowel"), gateway, `{
  "mcpServers": {
    "dowel": {
      "command": "dowel",
      "args": ["up", "--stdio"],
      "env": {
        "A": "1"
      }
    }
  }
}
`},
		{"only comments", "// mine", p("a"), 1, "// mine\n{\n  \"a\": 1\n}"},
		{"only comments and a break", "/* mine */\r\n", p("a"), 1, "/* mine */\r\n{\r\n  \"a\": 1\r\n}\r\n"},
		{"mark", "\ufeff{}\r\n", p("a"), true, "\ufeff{\r\n  \"a\": true\r\n}\r\n"},
		{"null file", "null\n", p("a", "b"), nil, "{\n  \"a\": {\n    \"b\": null\n  }\n}\n"},
		{"empty object", "{}", p("a"), "x", "{\n  \"a\": \"x\"\n}"},
		{"empty object with a comment", "{ // none\n}\n", p("a"), "x", "{ // none\n  \"a\": \"x\"\n}\n"},
		{"existing value", "{\n\t\"a\": 1, // one\n\t\"b\": 2\n}\n", p("a"), 3, "{\n\t\"a\": 3, // one\n\t\"b\": 2\n}\n"},
		{"same value", "{ \"a\" :1.0 }", p("a"), 1, "{ \"a\" :1.0 }"},
		{"escapes", "{}", p("a\"\n"), "<&>\x00\u2028", "{\n  \"a\\\"\\n\": \"<&>\\u0000\u2028\"\n}"},
		{"last member, tabs", "{\n\t\"a\": {\n\t\t\"x\": 1\n\t}\n}", p("b"), obj("y", obj("z", 2)),
			"{\n\t\"a\": {\n\t\t\"x\": 1\n\t},\n\t\"b\": {\n\t\t\"y\": {\n\t\t\t\"z\": 2\n\t\t}\n\t}\n}"},
		{"behind a comment", "{\n  \"a\": 1 // one\n  // the end\n}", p("b"), 2, "{\n  \"a\": 1, // one\n  \"b\": 2\n  // the end\n}"},
		{"trailing commas", "{\n  \"a\": {\n    \"x\": 1,\n  }, /* a */\n}", p("b"), obj("x", 2), "{\n  \"a\": {\n    \"x\": 1,\n  }, /* a */\n  \"b\": {\n    \"x\": 2,\n  },\n}"},
		{"trailing comma style in an empty one", "{\n  \"a\": {},\n}", p("a", "x"), 1, "{\n  \"a\": {\n    \"x\": 1,\n  },\n}"},
		{"one line", `{"a": 1}`, p("b"), obj("c", []int{1, 2}), `{"a": 1, "b": {"c": [1, 2]}}`},
		{"one line, tight", `{"a":[1,2]}`, p("b"), obj("c", []int{1, 2}), `{"a":[1,2],"b":{"c":[1,2]}}`},
		{"one line, trailing comma", `{"a": [1, 2,],}`, p("b"), 1, `{"a": [1, 2,], "b": 1,}`},
		{"one line, empty", `{"mcpServers": {}}`, p("mcpServers", "a"), obj("b", 1), `{"mcpServers": {"a": {"b": 1}}}`},
		{"siblings on one line each", "{\n  \"s\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n", p("s", "b"), obj("command", "y", "args", []string{}),
			"{\n  \"s\": {\n    \"a\": { \"command\": \"x\" },\n    \"b\": { \"command\": \"y\", \"args\": [] }\n  }\n}\n"},
		{"into one of one line", "{\n  \"s\": {\"a\": {\"env\": {}}}\n}", p("s", "a", "env", "K"), "v", "{\n  \"s\": {\"a\": {\"env\": {\"K\": \"v\"}}}\n}"},
		{"members that share a line", "{\n  \"a\": 1, \"b\": 2\n}", p("c"), 3, "{\n  \"a\": 1, \"b\": 2, \"c\": 3\n}"},
		{"comment ends the shared line", "{ \"a\": 1, // x\n}", p("c"), 3, "{ \"a\": 1, // x\n  \"c\": 3,\n}"},
		{"brace on the last line", "{\n  \"a\": 1 }", p("b"), 2, "{\n  \"a\": 1,\n  \"b\": 2 }"},
		{"lists of lines", "{\n  \"a\": [\n    1\n  ]\n}", p("b"), []int{2, 3}, "{\n  \"a\": [\n    1\n  ],\n  \"b\": [\n    2,\n    3\n  ]\n}"},
		{"list keeps its form", "{\n  \"a\": [\n    1\n  ],\n  \"b\": [2]\n}", p("b"), []int{3, 4}, "{\n  \"a\": [\n    1\n  ],\n  \"b\": [3, 4]\n}"},
		{"object onto object", "{\n  // first\n  \"a\": 1, // one\n  // second\n  \"b\": {\"x\": 1, \"y\": 2},\n  \"c\": 3\n}", p("b"), obj("z", 0, "x", 1),
			"{\n  // first\n  \"a\": 1, // one\n  // second\n  \"b\": {\"x\": 1, \"z\": 0},\n  \"c\": 3\n}"},
		{"null in between", "{\n  \"a\": null // none\n}", p("a", "b"), 1, "{\n  \"a\": {\n    \"b\": 1\n  } // none\n}"},
		{"entry of a list", "{\n  \"l\": [\n    {\n      \"name\": \"x\"\n    }\n  ]\n}", p("l", "[name=y]"), obj("v", 1),
			"{\n  \"l\": [\n    {\n      \"name\": \"x\"\n    },\n    {\n      \"name\": \"y\",\n      \"v\": 1\n    }\n  ]\n}"},
		{"entry of a list, in it", "{\"l\": [{\"name\": \"x\"}]}", p("l", "[name=x]", "v"), 1, "{\"l\": [{\"name\": \"x\", \"v\": 1}]}"},
		{"entry of a list that is not there", "", p("l", "[name=x]", "v"), 1, "{\n  \"l\": [\n    {\n      \"name\": \"x\",\n      \"v\": 1\n    }\n  ]\n}\n"},
		{"key like a selector", "{\"l\": {}}", p("l", "[name=x]"), 1, "{\"l\": {\"[name=x]\": 1}}"},
		{"comment at the very end", "{} // end", p("a"), 1, "{\n  \"a\": 1\n} // end"},
	})
}

func TestRemoveJSON(t *testing.T) {
	gone := removed{}
	runEdits(t, JSON, []edited{
		{"first", "{\n  \"a\": 1, // one\n  \"b\": 2\n}", p("a"), gone, "{\n  \"b\": 2\n}"},
		{"last", "{\n  \"a\": 1, // one\n  \"b\": 2 // two\n}", p("b"), gone, "{\n  \"a\": 1 // one\n}"},
		{"last with comma", "{\n  \"a\": 1, // one\n  \"b\": 2, // two\n}", p("b"), gone, "{\n  \"a\": 1, // one\n}"},
		{"only", "{\n  \"a\": {\n    \"b\": 1\n  }\n}", p("a", "b"), gone, "{\n  \"a\": {}\n}"},
		{"only with a comment of its own", "{\n  // mine\n  \"a\": 1\n}", p("a"), gone, "{}"},
		{"only beside a comment", "{\n  // not mine\n\n  \"a\": 1\n}", p("a"), gone, "{\n  // not mine\n\n}"},
		{"its comments", "{\n  // of x\n\n  // of a\n  /* and\n     more */\n  \"a\": 1,\n  // of b\n  \"b\": 2\n}", p("a"), gone, "{\n  // of x\n\n  // of b\n  \"b\": 2\n}"},
		{"comment in the line of the brace", "{ // all\n  \"a\": 1,\n  \"b\": 2\n}", p("a"), gone, "{ // all\n  \"b\": 2\n}"},
		{"one line, first", `{"a": 1, "b": 2}`, p("a"), gone, `{"b": 2}`},
		{"one line, last", `{ "a": 1, "b": 2 }`, p("b"), gone, `{ "a": 1 }`},
		{"one line, last with comma", `{"a": 1, "b": 2,}`, p("b"), gone, `{"a": 1,}`},
		{"one line, last behind a comment", `{"a": 1, /* b */ "b": 2}`, p("b"), gone, `{"a": 1 /* b */ }`},
		{"one line, last with comma behind a comment", `{"a": 1, /* b */ "b": 2,}`, p("b"), gone, `{"a": 1, /* b */ }`},
		{"one line, only", `{ "a": { "x": 1, } }`, p("a"), gone, `{}`},
		{"shared line", "{\n  \"a\": 1, \"b\": 2,\n  \"c\": 3\n}", p("b"), gone, "{\n  \"a\": 1, \n  \"c\": 3\n}"},
		{"brace on its line", "{\n  \"a\": 1,\n  \"b\": 2 }", p("b"), gone, "{\n  \"a\": 1 }"},
		{"entry of a list", "{\"l\": [{\"name\": \"x\"}, {\"name\": \"y\"}]}", p("l", "[name=x]"), gone, "{\"l\": [{\"name\": \"y\"}]}"},
		{"not there", "{\"l\": []} ", p("l", "[name=x]", "y"), gone, "{\"l\": []} "},
		{"CRLF", "{\r\n\t\"a\": 1,\r\n\t\"b\": 2\r\n}\r\n", p("b"), gone, "{\r\n\t\"a\": 1\r\n}\r\n"},
	})
}
