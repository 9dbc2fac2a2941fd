package schema

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type contact struct {
	Name   string    `json:"name" title:"Name" doc:"Your full name" minLength:"3" maxLength:"50"`
	Email  string    `json:"email" format:"email" default:"user@example.com"`
	Site   *string   `json:"site" format:"uri"`
	Born   string    `json:"born,omitempty" format:"date"`
	Call   time.Time `json:"call"`
	Age    uint8     `json:"age" minimum:"18" default:"50"`
	Count  int32     `json:"count"`
	Score  float64   `json:"score" minimum:"0" maximum:"1"`
	Agree  bool      `json:"agree" default:"false"`
	Color  string    `json:"color" enum:"Red,Green" default:"Red"`
	Titled string    `json:"titled" enum:"#F00,#0F0" enumTitles:"Red,Green" default:"#F00"`
}

type choices struct {
	Colors []string `json:"colors" title:"Colors" enum:"Red,Green,Blue" minItems:"1" maxItems:"2" default:"Red,Green"`
	Titled []string `json:"titled" enum:"#F00,#0F0" enumTitles:"Red,Green" default:"#F00"`
}

func TestForm(t *testing.T) {
	s, err := Form[contact]()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` +
		`"name":{"type":"string","title":"Name","description":"Your full name","minLength":3,"maxLength":50},` +
		`"email":{"type":"string","format":"email","default":"user@example.com"},` +
		`"site":{"type":"string","format":"uri"},` +
		`"born":{"type":"string","format":"date"},` +
		`"call":{"type":"string","format":"date-time"},` +
		`"age":{"type":"integer","minimum":18,"maximum":255,"default":50},` +
		`"count":{"type":"integer"},` +
		`"score":{"type":"number","minimum":0,"maximum":1},` +
		`"agree":{"type":"boolean","default":false},` +
		`"color":{"type":"string","enum":["Red","Green"],"default":"Red"},` +
		`"titled":{"type":"string","oneOf":[{"const":"#F00","title":"Red"},{"const":"#0F0","title":"Green"}],"default":"#F00"}` +
		`},"required":["name","email","call","age","count","score","agree","color","titled"]}`
	if got := string(s.JSON()); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	s, err = Form[choices]()
	if err != nil {
		t.Fatal(err)
	}
	want = `{"type":"object","properties":{` +
		`"colors":{"type":"array","title":"Colors","items":{"type":"string","enum":["Red","Green","Blue"]},"minItems":1,"maxItems":2,"default":["Red","Green"]},` +
		`"titled":{"type":"array","items":{"anyOf":[{"const":"#F00","title":"Red"},{"const":"#0F0","title":"Green"}]},"default":["#F00"]}` +
		`},"required":["colors","titled"]}`
	if got := string(s.JSON()); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	if err := s.Validate([]byte(`{"colors":["Red"],"titled":["#00F"]}`)); err == nil {
		t.Error("a choice that is not offered was accepted")
	}
}

// The schemas of forms satisfy the specification's own schema of a request. Revision 2025-11-25
// introduced choices of several values.
func TestFormSatisfiesSpecification(t *testing.T) {
	for _, c := range []struct {
		revision, definition string
		several              bool
	}{
		{"2025-06-18", "#/definitions/ElicitRequest/properties/params", false},
		{"2025-11-25", "#/$defs/ElicitRequestFormParams", true},
		{"2026-07-28", "#/$defs/ElicitRequestFormParams", true},
	} {
		spec := specification(t, c.revision, c.definition)
		for several, form := range map[bool]func() (*Schema, error){false: Form[contact], true: Form[choices]} {
			if several && !c.several {
				continue
			}
			s, err := form()
			if err != nil {
				t.Fatal(err)
			}
			params := newTree(t, fmt.Sprintf(`{"message":"m","requestedSchema":%s}`, s.JSON()))
			value, err := params.plain()
			if err != nil {
				t.Fatal(err)
			}
			if err := spec.Validate(value); err != nil {
				t.Errorf("%s: %v", c.revision, err)
			}
		}
	}
}

func specification(t *testing.T, revision, definition string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("testdata/mcp-" + revision + ".json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := newTree(t, string(text)).plain()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("spec:///schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("spec:///schema.json" + definition)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFormErrors(t *testing.T) {
	form := func(_ *Schema, err error) error { return err }
	type nested struct{ Inner struct{ X string } }
	for _, c := range []struct {
		err  error
		want string
	}{
		{form(Form[nested]()), "schema: nested.Inner: a form can ask for strings, numbers, booleans and choices among strings only"},
		{form(Form[string]()), "schema: string: a form is made of a struct, not of string"},
		{form(Form[struct{ X []string }]()), "schema: struct.X: a slice in a form must be one of strings with an enum tag"},
		{form(Form[struct {
			X []int `enum:"1,2"`
		}]()), "schema: struct.X: a slice in a form must be one of strings with an enum tag"},
		{form(Form[struct{ X any }]()), "schema: struct.X: a form can ask for"},
		{form(Form[struct{ X map[string]string }]()), "schema: struct.X: a form can ask for"},
		{form(Form[struct{ X []byte }]()), "schema: struct.X: contentEncoding is not allowed in a form"},
		{form(Form[struct {
			X string `pattern:"a"`
		}]()), "schema: struct.X: pattern is not allowed in a form"},
		{form(Form[struct {
			X string `format:"uuid"`
		}]()), `schema: struct.X: format "uuid" is not allowed in a form`},
		{form(Form[struct {
			X int `enum:"1,2"`
		}]()), "schema: struct.X: enum is not allowed in a form"},
		{form(Form[struct {
			X []string `enum:"a" uniqueItems:"true"`
		}]()), "schema: struct.X: uniqueItems is not allowed in a form"},
		{form(Form[struct {
			X map[string]string `json:",embed"`
		}]()), "a form cannot have an embedded map"},
	} {
		if c.err == nil || !strings.HasPrefix(c.err.Error(), c.want) && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("got %v, want %s", c.err, c.want)
		}
	}
}

func TestApplyDefaults(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"a":{"default":1},"b":{"type":"string"},"c":{"default":["x", "y"]},"q\"":{"default":null},"d":true}}`)
	for _, c := range []struct{ content, want string }{
		{`{}`, `{"a":1,"c":["x", "y"],"q\"":null}`},
		{` {"b" : "x"} `, `{"b" : "x","a":1,"c":["x", "y"],"q\"":null}`},
		{`{"a":2,"\u0063":1,"q\"":0}`, `{"a":2,"\u0063":1,"q\"":0}`},
	} {
		if got, err := s.ApplyDefaults([]byte(c.content)); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s (%v), want %s", c.content, got, err, c.want)
		}
	}
	for _, content := range []string{`[]`, `null`, `{`, ``} {
		if _, err := s.ApplyDefaults([]byte(content)); err == nil {
			t.Errorf("%q was accepted", content)
		}
	}
	if got, err := mustCompile(t, `true`).ApplyDefaults([]byte(`{}`)); err != nil || string(got) != `{}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestDialects(t *testing.T) {
	for _, uri := range []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema#", "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#"} {
		s := mustCompile(t, fmt.Sprintf(`{"$schema":%q,"type":"integer"}`, uri))
		if s.Validate([]byte(`1`)) != nil || s.Validate([]byte(`"1"`)) == nil {
			t.Errorf("%s is not followed", uri)
		}
	}
	// Keywords that mean something in some dialects only.
	for _, c := range []struct{ dialect, raw, valid, invalid string }{
		{"draft-04", `"minimum":1,"exclusiveMinimum":true`, `2`, `1`},
		{"draft-07", `"items":[{"type":"integer"}],"additionalItems":false`, `[1]`, `[1,2]`},
		{"draft-07", `"dependencies":{"a":["b"]}`, `{"b":1}`, `{"a":1}`},
		{"draft-07", `"prefixItems":[{"type":"integer"}],"maxItems":1`, `["1"]`, `[1,2]`},
		{"draft/2019-09", `"dependencies":{"a":["b"]},"dependentRequired":{"c":["d"]}`, `{"a":1}`, `{"c":1}`},
		{"draft/2020-12", `"prefixItems":[{"type":"integer"}],"items":false`, `[1]`, `["1"]`},
	} {
		s := mustCompile(t, fmt.Sprintf(`{"$schema":"https://json-schema.org/%s/schema",%s}`, c.dialect, c.raw))
		if s.Validate([]byte(c.valid)) != nil || s.Validate([]byte(c.invalid)) == nil {
			t.Errorf("%s: %s is not followed", c.dialect, c.raw)
		}
	}
	for _, c := range []struct{ raw, want string }{
		{`{"$schema":"http://json-schema.org/draft-03/schema#"}`, `JSON Schema dialect "http://json-schema.org/draft-03/schema#" is not known here`},
		{`{"$schema":"https://example.com/mine"}`, `JSON Schema dialect "https://example.com/mine"`},
		{`{"properties":{"a":{"$id":"urn:a","$schema":"https://example.com/mine"}}}`, `JSON Schema dialect "https://example.com/mine"`},
		{`{"$ref":"https://example.com/s.json"}`, `$ref "https://example.com/s.json" leaves the document`},
		{`{"$ref":"http://127.0.0.1/s.json#/$defs/a"}`, `leaves the document`},
		{`{"$id":"https://example.com/a","$ref":"b"}`, `leaves the document`},
		{`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, `$ref "file:///etc/passwd" leaves the document`},
		{`{"items":{"$ref":"other.json"}}`, `$ref "other.json" leaves the document`},
		{`{"pattern":"(?=a)"}`, `Go's regexp cannot run the pattern "(?=a)"`},
		{`{"pattern":"(?=a)","unevaluatedItems":true}`, `Go's regexp cannot run the pattern "(?=a)"`},
	} {
		if _, err := Compile([]byte(c.raw)); err == nil || !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.raw, err, c.want)
		}
	}
}

func TestCompileBounds(t *testing.T) {
	var chain []string
	for i := range maxChain + 1 {
		chain = append(chain, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"}]}`, i, i+1))
	}
	for name, raw := range map[string]string{
		"bytes":      `{"description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`,
		"depth":      strings.Repeat(`{"not":`, maxDepth) + `{}` + strings.Repeat(`}`, maxDepth),
		"subschemas": `{"anyOf":[` + strings.Repeat(`{},`, maxSubschemas) + `{}]}`,
		"chain":      `{"$defs":{` + strings.Join(chain, ",") + fmt.Sprintf(`,"d%d":{}}}`, maxChain+1),
		"loop":       `{"$ref":"#"}`,
		"long loop":  `{"anyOf":[{"type":"string"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#"}}}}`,
	} {
		start := time.Now()
		if _, err := Compile([]byte(raw)); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: got %v", name, err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: took %v", name, took)
		}
	}
}
