package skills

import (
	"strings"
	"testing"
)

func TestFrontmatterBecomesJSON(t *testing.T) {
	for yaml, want := range map[string]string{
		"name: a\ndescription: b":                           `{"name":"a","description":"b"}`,
		"a: 2024-01-01\nb: yes\nc: true\nd: null\ne:\nf: ~": `{"a":"2024-01-01","b":"yes","c":true,"d":null,"e":null,"f":null}`,
		"a: 017\nb: 0o17\nc: 0x1F\nd: +1\ne: 1.50\nf: .5\ng: 1e3\nh: 1_000\ni: 12345678901234567890123": `{"a":17,"b":15,"c":31,"d":1,"e":1.5,"f":0.5,"g":1000,"h":"1_000","i":12345678901234567890123}`,
		"a: '1'\nb: \"x\\ty\"\nc: |\n  one\n  two\nd: >-\n  one\n  two":                                 `{"a":"1","b":"x\ty","c":"one\ntwo\n","d":"one two"}`,
		"metadata:\n  version: '2'\n  tags: [a, 1, {b: c}]\nlist:\n- x\n- y":                            `{"metadata":{"version":"2","tags":["a",1,{"b":"c"}]},"list":["x","y"]}`,
		"1: x\ntrue: y": `{"1":"x","true":"y"}`,
	} {
		for _, ends := range []string{"\n", "\r\n"} {
			text := strings.ReplaceAll("---\n"+yaml+"\n--- \nBody\n---\n", "\n", ends)
			got, err := parseFrontmatter([]byte(text))
			if err != nil || string(got) != want {
				t.Errorf("%q: %s, %v: want %s", text, got, err, want)
			}
		}
	}
	for yaml, want := range map[string]string{
		"a: 1\na: 2": "already defined", "a: .nan": "JSON does not have", "a: .inf": "JSON does not have", "a: !!binary aGk=": "tag",
		"? [a]\n: b": "not YAML", "a: 1\n---\nb: 2": "", "a: &x 1": "anchor", "<<: {a: 1}": "merge key", "a: 1e999": "out of range",
		"a: " + strings.Repeat("{b: ", 20) + "1" + strings.Repeat("}", 20): "nested",
	} {
		got, err := parseFrontmatter([]byte("---\n" + yaml + "\n---\n"))
		if want == "" { // the second --- ends the frontmatter
			if err != nil || string(got) != `{"a":1}` {
				t.Errorf("%q: %s, %v", yaml, got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v: want %q", yaml, got, err, want)
		}
	}
}

func TestSameFrontmatter(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[{"c":null}]}`, `{ "b": [ {"c":null} ], "a": 1.0 }`, true},
		{`{"a":1}`, `{"a":1e0}`, true}, {`{"a":1}`, `{"a":"1"}`, false}, {`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false}, {`{"a":"x"}`, `{"a":"x "}`, false}, {`{"a":1}`, `{`, false}, {`[1,2]`, `[2,1]`, false},
	} {
		if got := sameFrontmatter([]byte(tt.a), []byte(tt.b)); got != tt.want {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

func FuzzParseFrontmatter(f *testing.F) {
	f.Add("name: a\ndescription: b")
	f.Add("a: [1, {b: 'c'}]\n")
	f.Fuzz(func(t *testing.T, yaml string) {
		object, err := parseFrontmatter([]byte("---\n" + yaml + "\n---\n"))
		if err == nil && !sameFrontmatter(object, object) {
			t.Errorf("%q: %s is not JSON", yaml, object)
		}
	})
}
