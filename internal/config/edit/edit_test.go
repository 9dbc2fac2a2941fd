package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

func TestFormat(t *testing.T) {
	for name, want := range map[string]string{"a.json": "JSON", "b/A.JSONC": "JSON", "x.json5": "JSON", "c.yaml": "YAML", "c.yml": "YAML", "config.toml": "TOML"} {
		if f, ok := FormatOf(name); !ok || f.String() != want {
			t.Errorf("%s is %v, %v", name, f, ok)
		}
	}
	if f, ok := FormatOf("a.txt"); ok {
		t.Errorf("a.txt is %v", f)
	}
	if s := Format(9).String(); s != "Format(9)" {
		t.Error(s)
	}
	if _, err := Set(nil, Format(9), p("a"), 1); err == nil {
		t.Error("a format that is none")
	}
}

func TestValues(t *testing.T) {
	type word string
	value := map[string]any{
		"b": []any{int8(-1), uint16(2), 3.5, float32(4), json.Number("5"), json.Number("6.5"), uint64(math.MaxUint64), int64(math.MinInt64)},
		"a": map[word]word{"x": "y"},
		"c": [2]bool{true},
	}
	want := obj("a", obj("x", "y"), "b", []any{int64(-1), int64(2), 3.5, 4.0, int64(5), 6.5, uint64(math.MaxUint64), int64(math.MinInt64)}, "c", []any{true, false})
	for _, f := range []Format{JSON, YAML} {
		text, err := Set(nil, f, p("v"), value)
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := Lookup(text, f, p("v"))
		if !ok || err != nil || !equalValues(got, want) {
			t.Errorf("%v: %v, %v, %v from %s", f, got, ok, err, text)
		}
	}
	circle := map[string]any{}
	circle["circle"] = circle
	for name, v := range map[string]any{
		"NaN": math.NaN(), "infinity": []float64{math.Inf(1)}, "function": func() {}, "channel in a map": map[string]any{"c": make(chan int)},
		"no UTF-8": "\xff", "key without UTF-8": map[string]int{"\xff": 1}, "number": json.Number("0x1"), "map": map[int]int{1: 1},
		"key twice": obj("a", 1, "a", 2), "circle": circle,
	} {
		if got, err := Set(nil, JSON, p("a"), v); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, tt := range []struct {
		f    Format
		in   string
		want any
	}{
		{JSON, "{\"a\": {\"b\": [1, 2.5, \"x\", null, true, 1e999]}} // c", []any{int64(1), 2.5, "x", nil, true, Literal("1e999")}},
		{YAML, "a:\n  b: [1, 2.5, x, ~, true, .inf]\n", []any{int64(1), 2.5, "x", nil, true, Literal("+Inf")}},
		{TOML, "a.b = [1, 2.5, 'x', 1979-05-27, true, 1979-05-27T07:32:00Z, nan]", []any{int64(1), 2.5, "x", Literal("1979-05-27"), true, Literal("1979-05-27T07:32:00Z"), Literal("NaN")}},
	} {
		got, ok, err := Lookup([]byte(tt.in), tt.f, p("a", "b"))
		if err != nil || !ok || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: %#v, %v, %v", tt.f, got, ok, err)
		}
		if got, ok, err := Lookup([]byte(tt.in), tt.f, p("a", "c")); got != nil || ok || err != nil {
			t.Errorf("%v: %v, %v, %v", tt.f, got, ok, err)
		}
		if _, _, err := Lookup([]byte(tt.in), tt.f, p("a", "b", "c")); err == nil {
			t.Errorf("%v: a list has keys", tt.f)
		}
	}
	got, _, err := Lookup([]byte(`{"l": [1, {"name": "x"}, {"name": "y", "v": 3}]}`), JSON, p("l", "[name=y]", "v"))
	if got != int64(3) || err != nil {
		t.Error(got, err)
	}
}

func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		f     Format
		in    string
		path  []string
		value any
		says  string
	}{
		"no path":                 {JSON, "{}", nil, 1, "path is empty"},
		"no JSON":                 {JSON, "{", p("a"), 1, "not valid JSON"},
		"no YAML":                 {YAML, "a: [", p("a"), 1, "not valid YAML"},
		"list at the top":         {JSON, "[]", p("a"), 1, "[name=…]"},
		"scalar at the top":       {YAML, "x", p("a"), 1, "neither an object nor a list"},
		"in a scalar":             {JSON, `{"a": 1}`, p("a", "b"), 1, "neither an object nor a list"},
		"key twice":               {JSON, `{"a": 1, "a": 2}`, p("a"), 3, "twice"},
		"name twice":              {JSON, `{"l": [{"name": "x"}, {"name": "x"}]}`, p("l", "[name=x]"), obj(), "twice"},
		"another name":            {JSON, `{"l": []}`, p("l", "[name=x]"), obj("name", "y"), "own name is y"},
		"entry that is no object": {JSON, `{}`, p("l", "[name=x]"), 1, "is an object"},
		"list of lists":           {JSON, `{}`, p("l", "[name=x]", "[name=y]"), obj(), "both"},
		"selector in a scalar":    {JSON, `{"l": 1}`, p("l", "[name=x]"), obj(), "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Set([]byte(tt.in), tt.f, tt.path, tt.value)
			if got != nil || err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if got, err := Remove([]byte(`{"a": 1, "a": 2}`), JSON, p("a")); got != nil || !errors.Is(err, ErrUnsafe) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Remove([]byte(`{`), JSON, p("a")); err == nil {
		t.Error("a value was removed from a text that is not JSON")
	}
}

// TestThereAndBack adds an entry beside others and removes it again. The text must be unchanged.
func TestThereAndBack(t *testing.T) {
	for _, s := range seeds {
		model, err := mustSyntax(s.f).parseText([]byte(s.text))
		if err != nil {
			t.Fatalf("%q: %v", s.text, err)
		}
		eachObject(model, nil, func(path []string, o Object) {
			path = appendKey(path, "new one")
			set, err := Set([]byte(s.text), s.f, path, obj("command", "c", "args", []string{"a"}))
			if err != nil {
				if shared := strings.Contains(s.text, "*x"); !shared || !errors.Is(err, ErrUnsafe) {
					t.Errorf("%q at %v: %v", s.text, path, err)
				}
				return
			}
			back, err := Remove(set, s.f, path)
			if err != nil || len(o) > 0 && string(back) != s.text {
				t.Errorf("%q at %v\nbecame %q\nthen   %q, %v", s.text, path, set, back, err)
			}
		})
	}
}

func mustSyntax(f Format) syntax {
	d, err := f.syntax()
	if err != nil {
		panic(err)
	}
	return d
}

func eachObject(v any, path []string, f func([]string, Object)) {
	switch v := v.(type) {
	case Object:
		f(path, v)
		for _, m := range v {
			eachObject(m.Value, appendKey(path, m.Key), f)
		}
	case []any:
		for _, e := range v {
			if o, ok := e.(Object); ok {
				if name, ok := o.member("name"); ok {
					eachObject(e, appendKey(path, "[name="+name.(string)+"]"), f)
				}
			}
		}
	}
}

var seeds = []struct {
	f    Format
	text string
}{
	{JSON, "{}"},
	{JSON, "{\n  // servers\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"npx\", // c\n      \"args\": [\"-y\", \"p\"],\n    },\n  },\n}\n"},
	{JSON, "{\r\n\t\"servers\": {\r\n\t\t\"a\": {\"url\": \"http://x\"}\r\n\t},\r\n\t\"inputs\": [ { \"name\": \"i\" } ]\r\n}\r\n"},
	{JSON, `{"mcpServers":{"a":{"command":"c","args":[]},"b":{"env":{}}}}`},
	{JSON, "{\n  /* a */ \"a\": 1, /* b\n b */ \"b\": {\"x\": 1}\n  /* end */ }"},
	{YAML, "name: c\nversion: 1.0.0\nmcpServers:\n  - name: x # x\n    command: npx\n    args:\n      - \"-y\"\n  # w\n  - name: w\n    env: {A: 1}\n"},
	{YAML, "# goose\nextensions:\n    dev:\n        args: [a, b]\n        # cmd: x\n\n        enabled: true\n    two: {}\n"},
	{YAML, "a: |\n  text\n\n  more\nb: >-\n  x\nc: 'it''s'\nd: \"x\n  y\"\ne: plain\n  text\nf:\n- x\n-\n  name: y\n  z: ~\n"},
	{YAML, "---\r\na: &x {k: 1}\r\nb:\r\n  l: *x\r\n...\r\n"},
	{TOML, "model = \"x\"\n\n# servers\n[mcp_servers.a]\ncommand = \"npx\" # c\nargs = [\n  \"-y\",\n]\n\n[mcp_servers.a.env]\nK = \"v\"\n\n[mcp_servers.\"b c\"]\nurl = \"u\"\nenv = { A = \"1\" }"},
	{TOML, "a.b = 1\na.c.d = 2\n[[s]]\nname = \"x\"\n\n[s.env]\nK = 1\n\n[[s]]\nname = \"z\"\n\n[t]\n"},
	{TOML, "mcp_servers = []\nd = 1979-05-27 07:32:00\nm = '''\nx'''\n\n[p.q]\ni = { a = [ { name = \"n\" } ] }\n"},
}

// FuzzEdit checks the package's promises with the parsers alone.
func FuzzEdit(f *testing.F) {
	for _, s := range seeds {
		for _, path := range []string{"mcpServers/new", "mcp_servers/a/env", "mcpServers/[name=x]/env/K", "a", "s/[name=x]", "b"} {
			f.Add(int(s.f), s.text, path, `{"command":"c","args":["-y","#:{"],"env":{"A B":"1"},"n":1.5}`)
			f.Add(int(s.f), s.text, path, `"it's: #"`)
		}
	}
	f.Fuzz(func(t *testing.T, format int, text, path, value string) {
		var v any
		if format < 0 || format > 2 || json.Unmarshal([]byte(value), &v) != nil || len(text) > 1000 {
			return
		}
		f, elements := Format(format), strings.Split(path, "/")
		_, was, _ := Lookup([]byte(text), f, elements)
		set, err := Set([]byte(text), f, elements, v)
		if err == nil {
			checkSet(t, f, text, string(set), elements, v, was)
			text = string(set)
		}
		gone, err := Remove([]byte(text), f, elements)
		if err != nil {
			return
		}
		if got, ok, err := Lookup(gone, f, elements); ok || err != nil {
			t.Errorf("removed from %q, %v is in %q: %v, %v", text, path, gone, got, err)
		}
		parseWithOthers(t, f, gone)
	})
}

func checkSet(t *testing.T, f Format, text, set string, path []string, v any, was bool) {
	t.Helper()
	got, ok, err := Lookup([]byte(set), f, path)
	want, _ := normalize(v)
	if o, isObject := got.(Object); isObject && len(o) > 0 {
		if key, name, ok := parseSelector(path[len(path)-1]); ok && o[0].Key == key && o[0].Value == name {
			if _, has := want.(Object).member(key); !has {
				got = o[1:]
			}
		}
	}
	if _, _, list := parseSelector(path[len(path)-1]); err != nil || !ok || !list && !equalValues(got, want) {
		t.Errorf("%q became %q, in which %v is %v, %v, %v", text, set, path, got, ok, err)
	}
	if !was && !isSubsequence(strings.ReplaceAll(text, "null", ""), set) {
		t.Errorf("%q lost something when it became %q", text, set)
	}
	if strings.Contains(text, "\r\n") && !strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n") && strings.Contains(strings.ReplaceAll(set, "\r\n", ""), "\n") {
		t.Errorf("%q became %q, with other line ends", text, set)
	}
	parseWithOthers(t, f, []byte(set))
}

// isSubsequence reports whether set contains all of text in the same order, ignoring white space,
// brackets and nulls.
func isSubsequence(text, set string) bool {
	for _, c := range []byte(text) {
		if isSpace(c) || strings.IndexByte("{}[],~", c) >= 0 {
			continue
		}
		i := strings.IndexByte(set, c)
		if i < 0 {
			return false
		}
		set = set[i+1:]
	}
	return true
}

// parseWithOthers parses text with other libraries.
func parseWithOthers(t *testing.T, f Format, text []byte) {
	t.Helper()
	text = bytes.TrimPrefix(text, byteOrderMark)
	var v any
	var err error
	switch f {
	case JSON:
		if d := newDocument(text, jsonComment); d.skipSpace(0) == len(text) {
			return
		}
		var plain []byte
		if plain, err = hujson.Standardize(append(bytes.Clone(text), '\n')); err == nil {
			err = json.Unmarshal(plain, &v)
			if err != nil && strings.Contains(err.Error(), "cannot unmarshal number") {
				err = nil // 1e999
			}
		}
	case YAML:
		err = yaml.Unmarshal(text, &v)
	case TOML:
		err = toml.Unmarshal(text, &v)
	}
	if err != nil {
		t.Errorf("%q cannot be read: %v", text, err)
	}
}
