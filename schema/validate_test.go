package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

var malformed = []struct{ text, want string }{
	{``, "unexpected end"},
	{` `, "unexpected end"},
	{`{`, "expected a member name"},
	{`{"a"}`, "expected a colon"},
	{`{"a":}`, "invalid value"},
	{`{"a":1,}`, "expected a member name"},
	{`[1,]`, "invalid value"},
	{`[1 2]`, "expected a comma or the closing bracket"},
	{`{"a":1 "b":2}`, "expected a comma or the closing bracket"},
	{`nul`, "invalid value"},
	{`01`, "unexpected data after the value"},
	{`-`, "invalid number"},
	{`1.`, "invalid number"},
	{`1e`, "invalid number"},
	{`+1`, "invalid value"},
	{`"a`, "unexpected end inside a string"},
	{`"\x"`, "invalid escape in a string"},
	{`"\u12"`, `invalid \u escape`},
	{`"\ud800"`, "unpaired surrogate in a string"},
	{`"\udc00"`, "unpaired surrogate in a string"},
	{`"\ud800\u0041"`, "unpaired surrogate in a string"},
	{"\"a\nb\"", "control character in a string"},
	{"\"\xff\"", "invalid UTF-8"},
	{"\"\xed\xa0\x80\"", "invalid UTF-8"},
	{`1 2`, "unexpected data after the value"},
	{`{"a":1,"a":2}`, "duplicate name in an object"},
	{`{"a":1,"\u0061":2}`, "duplicate name in an object"},
	{`{"x":1,"\u0078":2}`, "duplicate name in an object"},
	{`[{"b":{"x":1,"y":2,"x":3}}]`, "duplicate name in an object"},
	{strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "nested too deeply"},
}

func TestMalformed(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	cases := append(malformed[:len(malformed):len(malformed)],
		struct{ text, want string }{"{" + strings.Join(many, ",") + `,"k7":1}`, "duplicate name in an object"})
	// Malformed text is a syntax error with every schema.
	for _, raw := range []string{`{}`, `{"properties":{"a":{"type":"integer"}},"items":{"type":"integer"}}`, `false`, `{"unevaluatedProperties":true}`, `{"anyOf":[{"type":"object"},true]}`} {
		s := mustCompile(t, raw)
		for _, c := range cases {
			var syntax *syntaxError
			err := s.Validate([]byte(c.text))
			if !errors.As(err, &syntax) || syntax.message != c.want {
				t.Errorf("schema %s, text %.60q: got %v, want %s", raw, c.text, err, c.want)
			}
		}
		if err := s.Validate([]byte("{" + strings.Join(many, ",") + "}")); raw != `false` && err != nil {
			t.Errorf("schema %s: %v", raw, err)
		}
	}
}

func TestDepth(t *testing.T) {
	deepest := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	for _, raw := range []string{`{}`, `{"items":{"$ref":"#"}}`} {
		if err := mustCompile(t, raw).Validate([]byte(deepest)); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestMessages(t *testing.T) {
	const alerts = `{"type":"object","properties":{"state":{"type":"string","minLength":2,"maxLength":2},"kind":{"type":"string","enum":["a","b"]},"limit":{"type":"integer","minimum":1}},"required":["state"],"additionalProperties":false}`
	const shapes = `{"oneOf":[{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},{"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number"}},"required":["kind","side"]}]}`
	for _, c := range []struct{ schema, value, want string }{
		{alerts, `{}`, `missing required property "state"`},
		{alerts, `{"state":"California"}`, `/state: must be at most 2 characters long (got 10)`},
		{alerts, `{"state":"C"}`, `/state: must be at least 2 characters long (got 1)`},
		{alerts, `{"state":"CA","kind":"c"}`, `/kind: must be one of "a", "b" (got the string "c")`},
		{alerts, `{"state":"CA","limit":"5"}`, `/limit: must be an integer (got the string "5")`},
		{alerts, `{"state":"CA","limit":1.5}`, `/limit: must be an integer (got 1.5)`},
		{alerts, `{"state":"CA","limit":0}`, `/limit: must be at least 1 (got 0)`},
		{alerts, `{"state":"CA","limit":null}`, `/limit: must be an integer (got null; leave the property out instead)`},
		{alerts, `{"state":null}`, `/state: must be a string (got null)`},
		{alerts, `{"stat":"CA"}`, `unknown property "stat"; did you mean "state"?; missing required property "state"`},
		{alerts, `{"state":"CA","zzz":1}`, `unknown property "zzz"; known are "state", "kind" and "limit"`},
		{alerts, `[]`, `must be an object (got an array)`},
		{alerts, `"{}"`, `must be an object (got the string "{}")`},
		{shapes, `{"kind":"square"}`, `missing required property "side"`},
		{shapes, `{"kind":"circle","r":"big"}`, `/r: must be a number (got the string "big")`},
		{shapes, `{"kind":"cube"}`, `must match one of 2 alternatives: /kind: must be "circle" (got the string "cube"), or /kind: must be "square" (got the string "cube")`},
		{`{"anyOf":[{"type":"string","maxLength":1},{"type":"null"}]}`, `"ab"`, `must be at most 1 character long (got 2)`},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, `must match one of 2 alternatives: must be a string (got 1), or must be null (got 1)`},
		{`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `3`, `must match exactly one of the alternatives, but matches number 1 and number 2`},
		{`{"type":["string","null"]}`, `1`, `must be a string or null (got 1)`},
		{`{"items":{"type":"string"},"maxItems":1}`, `["a",2]`, `/1: must be a string (got 2); must have at most 1 item (got 2)`},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, `must not have equal items (items 0 and 2 are)`},
		{`{"properties":{"a/b~c":{"type":"string"}}}`, `{"a/b~c":1}`, `/a~1b~0c: must be a string (got 1)`},
		{`{"pattern":"^a$"}`, `"b"`, `must match the pattern ^a$ (got "b")`},
		{`{"multipleOf":0.5}`, `0.7`, `must be a multiple of 0.5 (got 0.7)`},
		{`{"exclusiveMinimum":1,"exclusiveMaximum":1}`, `1`, `must be greater than 1 (got 1); must be less than 1 (got 1)`},
		{`{"not":{}}`, `1`, `must not match the schema under not`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `/a: must not be present`},
		{`{"propertyNames":{"maxLength":1}}`, `{"abc":1}`, `/abc: its name must be at most 1 character long (got 3)`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `missing property "b", which "a" requires`},
		{`{"contains":{"type":"integer"}}`, `["x"]`, `must have at least 1 item that the schema under contains accepts (got 0)`},
		{`{"minProperties":2}`, `{"a":1}`, `must have at least 2 properties (got 1)`},
		{`{"unevaluatedProperties":false}`, `{"a":1}`, `/a: must not be present`},
		{`{"const":` + fmt.Sprintf("%q", strings.Repeat("x", 100)) + `}`, `"` + strings.Repeat("é", 60) + `"`, `must be "` + strings.Repeat("x", 47) + `… (got the string "` + strings.Repeat("é", 23) + `…)`},
	} {
		err := mustCompile(t, c.schema).Validate([]byte(c.value))
		var invalid *ValidationError
		if !errors.As(err, &invalid) || err.Error() != c.want {
			t.Errorf("%s on %s:\n got %v\nwant %s", c.value, c.schema, err, c.want)
		}
	}
}

func TestIssuesAreBounded(t *testing.T) {
	err := mustCompile(t, `{"items":{"type":"string"}}`).Validate([]byte("[" + strings.Repeat("1,", 99) + "1]"))
	var invalid *ValidationError
	if !errors.As(err, &invalid) || len(invalid.Issues) != maxIssues || !invalid.More || !strings.HasSuffix(err.Error(), "; and more") {
		t.Errorf("got %v", err)
	}
}

func TestValidWithoutAllocation(t *testing.T) {
	if raceDetector {
		return // it makes sync.Pool forget at random
	}
	for _, c := range []struct{ schema, value string }{
		{smallSchema, `{"message":"hi"}`},
		{nestedSchema, nestedValue},
		{`{}`, nestedValue},
		{`{"additionalProperties":{"type":"integer"}}`, `{"a":1,"b":2,"\u0063":3}`},
		{`{"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{"const":1}}}],"not":{"required":["z"]}}`, `{"a":1.0}`},
		{`{"uniqueItems":true,"items":{"enum":["a","b",1.5,{"k":1}]}}`, `["a","\u0062",15e-1,{"k":1}]`},
		{`{"pattern":"^a+$","maxLength":10}`, `"aaa\u0061"`},
	} {
		s, value := mustCompile(t, c.schema), []byte(c.value)
		if n := testing.AllocsPerRun(200, func() {
			if err := s.Validate(value); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s on %s: %v allocations", c.value, c.schema, n)
		}
	}
}

// bombs are schemas that are small and take forever without a bound.
func bombs() map[string]string {
	deep := func(keyword string) string {
		var defs []string
		for i := range 60 {
			defs = append(defs, fmt.Sprintf(`"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, keyword, i+1, i+1))
		}
		return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d60":{"type":"string"}}}`
	}
	var enum []string
	for i := range 10000 {
		enum = append(enum, fmt.Sprintf("%d.5", i))
	}
	return map[string]string{
		"anyOf":    deep("anyOf"),
		"allOf":    strings.Replace(deep("allOf"), `"type":"string"`, `"type":"array"`, 1),
		"oneOf":    deep("oneOf"),
		"not":      `{"not":` + deep("anyOf")[:1] + `"$ref":"#/$defs/d0"},` + deep("anyOf")[len(`{"$ref":"#/$defs/d0",`):],
		"recurse":  `{"type":"array","items":{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"allOf":[{"$ref":"#"},{"type":"integer"}]}]}}`,
		"enum":     `{"items":{"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/e"},`, 400) + `true]},"$defs":{"e":{"enum":[` + strings.Join(enum, ",") + `]}}}`,
		"contains": `{"contains":{"$ref":"#/$defs/c"},"$defs":{"c":{"allOf":[` + strings.Repeat(`{"uniqueItems":true},`, 2000) + `false]}}}`,
	}
}

// Each bomb ends within its bound, also if the evaluated children are searched again. The bound is
// lower than the real one, because the race detector makes steps slow.
func TestBombs(t *testing.T) {
	const steps = maxSteps / 16
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	many := "[" + strings.Repeat("1,", 2000) + "9999.5]"
	for _, extra := range []string{``, `"unevaluatedItems":true,`} {
		ended := 0
		for name, raw := range bombs() {
			s, err := Compile([]byte(strings.Replace(raw, "{", "{"+extra, 1)))
			if err != nil {
				if !errors.Is(err, ErrUnsupported) {
					t.Errorf("%s%s: %v", extra, name, err)
				}
				continue
			}
			for _, value := range []string{`1`, deep, many, "[" + many + "," + many + "]"} {
				start := time.Now()
				if errors.Is(s.validate([]byte(value), steps), ErrTooComplex) {
					ended++
				}
				if took := time.Since(start); took > time.Minute {
					t.Errorf("%s%s on %.20s: took %v", extra, name, value, took)
				}
			}
		}
		if ended < 10 {
			t.Errorf("%swork was bounded in %d cases only", extra, ended)
		}
	}
}

func TestTooComplex(t *testing.T) {
	raw := bombs()["anyOf"]
	for _, raw := range []string{raw, strings.Replace(raw, "{", `{"unevaluatedItems":true,`, 1)} {
		if err := mustCompile(t, raw).Validate([]byte(`1`)); !errors.Is(err, ErrTooComplex) {
			t.Errorf("got %v", err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	for _, raw := range []string{nestedSchema, strings.Replace(nestedSchema, "{", `{"unevaluatedProperties":false,`, 1)} {
		s := mustCompile(t, raw)
		done := make(chan error)
		for range 8 {
			go func() {
				for range 50 {
					if err := s.Validate([]byte(nestedValue)); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
}
