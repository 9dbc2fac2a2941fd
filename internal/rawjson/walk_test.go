package rawjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func walk(it Iterator) (got []string) {
	for it.Next() {
		got = append(got, fmt.Sprintf("%s=%s", it.Key, it.Value))
	}
	if it.Next() {
		got = append(got, "Next after the end")
	}
	return got
}

func TestObject(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{}`, ``}, {` { } `, ``}, {`[]`, ``}, {`[1]`, ``}, {`null`, ``}, {`"{"`, ``}, {``, ``}, {`  `, ``}, {`12`, ``},
		{`{"a":1}`, `a=1`}, {` { "a" : 1 , "b" : "x" } `, `a=1|b="x"`}, {"{\n\t\"a\"\r\n:\t1\n,\"b\":2}", `a=1|b=2`},
		{`{"a":{"b":[1,{"c":"}]"}]},"d":[]}`, `a={"b":[1,{"c":"}]"}]}|d=[]`},
		{`{"a":"\"","b":"\\","c":"\\\"","d":"}"}`, `a="\""|b="\\"|c="\\\""|d="}"`},
		{`{"a\"b":1,"\\":2,"\u00e9":3,"é":4,"\n":5}`, "a\"b=1|\\=2|é=3|é=4|\n=5"},
		{`{"":1}`, `=1`}, {`{"a":-1.5e3,"b":true,"c":null}`, `a=-1.5e3|b=true|c=null`}, {`{"a":1,"a":2}`, `a=1|a=2`},
	} {
		if got := strings.Join(walk(Object([]byte(tt.text))), "|"); got != tt.want {
			t.Errorf("Object(%q): %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestArray(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`[]`, ``}, {`[ ]`, ``}, {`{}`, ``}, {`{"a":1}`, ``}, {`null`, ``}, {``, ``}, {`[1]`, `=1`}, {` [ 1 , "a,]" , [2,[3]] , {"b":4} ] `, `=1|="a,]"|=[2,[3]]|={"b":4}`},
		{"[1\n,\t2\r]", `=1|=2`}, {`["\\","\\\\"]`, `="\\"|="\\\\"`}, {`[true,false,null,-0.1E+2]`, `=true|=false|=null|=-0.1E+2`},
	} {
		if got := strings.Join(walk(Array([]byte(tt.text))), "|"); got != tt.want {
			t.Errorf("Array(%q): %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestIteratorOffsets(t *testing.T) {
	object := []byte(` { "a" : [1, 2] , "b":"c" }`)
	var members []string
	for it := Object(object); it.Next(); {
		members = append(members, string(object[it.Start:it.End]))
	}
	if got := strings.Join(members, "|"); got != `"a" : [1, 2]|"b":"c"` {
		t.Errorf("members %s", got)
	}
	array := []byte(`[ 1 , {} ]`)
	for it := Array(array); it.Next(); {
		if string(array[it.Start:it.End]) != string(it.Value) || it.Key != nil {
			t.Errorf("%q at %d..%d, key %q", it.Value, it.Start, it.End, it.Key)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, tt := range []struct{ object, name, want string }{
		{`{"a":1,"b":2}`, "b", `2`}, {`{"a":1,"b":2}`, "c", `<nil>`}, {`{"a":{"b":1}}`, "b", `<nil>`}, {`{"a":1,"a":2}`, "a", `1`}, {`{"\u0061":1}`, "a", `1`},
		{`{"a":null}`, "a", `null`}, {`{"":[ ]}`, "", `[ ]`}, {`["a"]`, "a", `<nil>`}, {``, "a", `<nil>`}, {`null`, "", `<nil>`}, {`{"A":1}`, "a", `<nil>`},
	} {
		got := "<nil>"
		if raw := Lookup([]byte(tt.object), tt.name); raw != nil {
			got = string(raw)
		}
		if got != tt.want {
			t.Errorf("Lookup(%s, %q) = %s, want %s", tt.object, tt.name, got, tt.want)
		}
	}
}

func TestString(t *testing.T) {
	for _, tt := range []struct {
		raw, want string
		ok        bool
	}{
		{`"a"`, "a", true}, {`""`, "", true}, {`"\n\"\\\/"`, "\n\"\\/", true}, {`"\u00e9é"`, "éé", true}, {`"\ud83d\ude00"`, "😀", true},
		{`"\ud83d"`, "\ufffd", true}, {`"a\ude00b"`, "a\ufffdb", true}, // half a pair, as JavaScript writes cut text
		{`1`, "", false}, {`null`, "", false}, {``, "", false}, {`"`, "", false}, {`{}`, "", false},
	} {
		if got, ok := String([]byte(tt.raw)); got != tt.want || ok != tt.ok {
			t.Errorf("String(%s) = %q, %v, want %q, %v", tt.raw, got, ok, tt.want, tt.ok)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		raw          string
		object, null bool
	}{
		{`{}`, true, false}, {"\n {", true, false}, {`[]`, false, false}, {`null`, false, true}, {` null `, false, true}, {`"null"`, false, false}, {``, false, false}, {`nul`, false, false},
	} {
		if got := IsObject([]byte(tt.raw)); got != tt.object {
			t.Errorf("IsObject(%q) = %v", tt.raw, got)
		}
		if got := IsNull([]byte(tt.raw)); got != tt.null {
			t.Errorf("IsNull(%q) = %v", tt.raw, got)
		}
	}
}

func TestAppendString(t *testing.T) {
	for _, s := range []string{"", "a", "\"\\/\b\f\n\r\t", "\x00\x1f\x7f", "é€😀", "<script>&'", "\u2028\u2029", "\xff", "a\xc3", "\xed\xa0\x80"} {
		raw := AppendString([]byte("x"), s)[1:]
		var got string
		if err := json.Unmarshal(raw, &got); err != nil || got != eachReplaced(s) {
			t.Errorf("AppendString(%q) = %s, which is %q, %v", s, raw, got, err)
		}
		if err := CheckAll(raw); err != nil {
			t.Errorf("AppendString(%q) = %s: %v", s, raw, err)
		}
	}
}

func TestAppendMembers(t *testing.T) {
	only := func(names ...string) func([]byte) bool {
		return func(key []byte) bool {
			for _, n := range names {
				if string(key) == n {
					return true
				}
			}
			return false
		}
	}
	for _, tt := range []struct {
		object string
		drop   func([]byte) bool
		want   string
		any    bool
	}{
		{`{}`, nil, ``, false}, {`{"a":1}`, nil, `"a":1`, true}, {` { "a" : 1 , "b" : [ 2 ] } `, nil, `"a" : 1 , "b" : [ 2 ]`, true},
		{` { "a" : 1 , "b" : [ 2 ] } `, only("c"), `"a" : 1,"b" : [ 2 ]`, true},
		{`{"a":1,"b":2,"c":3}`, only("a"), `"b":2,"c":3`, true}, {`{"a":1,"b":2,"c":3}`, only("b"), `"a":1,"c":3`, true}, {`{"a":1,"b":2,"c":3}`, only("c"), `"a":1,"b":2`, true},
		{`{"a":1}`, only("a"), ``, false}, {`{"\u0061":1,"a":2,"x":3}`, only("a"), `"x":3`, true}, {`[1]`, nil, ``, false}, {`null`, nil, ``, false},
	} {
		got, any := AppendMembers([]byte("<"), []byte(tt.object), tt.drop)
		if string(got) != "<"+tt.want || any != tt.any {
			t.Errorf("AppendMembers(%s) = %s, %v, want %s, %v", tt.object, got, any, tt.want, tt.any)
		}
	}
}

func TestSet(t *testing.T) {
	for _, tt := range []struct{ object, name, value, want string }{
		{`{}`, "a", `1`, `{"a":1}`}, {`{"b":2}`, "a", `1`, `{"b":2,"a":1}`}, {`{"a":2,"b":3}`, "a", `1`, `{"b":3,"a":1}`}, {`{"a":1,"a":2}`, "a", `3`, `{"a":3}`},
		{`{"a":1}`, "a", ``, `{}`}, {`{"a":1,"b":2}`, "a", ``, `{"b":2}`}, {`{"a":1}`, "b", ``, `{"a":1}`}, {``, "a", `1`, `{"a":1}`}, {`null`, "a", `1`, `{"a":1}`},
		{`{}`, "a\"\n", `{}`, `{"a\"\n":{}}`}, {`{ "x" : 1.0 }`, "y", `2`, `{"x" : 1.0,"y":2}`},
	} {
		var value []byte
		if tt.value != "" {
			value = []byte(tt.value)
		}
		before := tt.object
		object := []byte(tt.object)
		if got := Set(object, tt.name, value); string(got) != tt.want {
			t.Errorf("Set(%s, %q, %s) = %s, want %s", tt.object, tt.name, tt.value, got, tt.want)
		}
		if string(object) != before {
			t.Errorf("Set changed its input to %s", object)
		}
	}
}

func TestWalkAllocations(t *testing.T) {
	text := []byte(`{"a":1,"b":{"c":[1,2,{"d":"e"}]},"f":"\n"}`)
	if n := testing.AllocsPerRun(100, func() {
		if Lookup(text, "f") == nil || Lookup(text, "g") != nil {
			t.Fatal("wrong")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// eachReplaced puts U+FFFD in the place of each invalid byte.
func eachReplaced(s string) string { return string([]rune(s)) }
