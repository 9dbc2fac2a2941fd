package schema

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// wantProperties compares the properties of T's schema, each written as "name":{…}, and returns the
// schema.
func wantProperties[T any](t *testing.T, want []string) *Schema {
	t.Helper()
	s, err := For[T]()
	return wantSchemaProperties(t, s, err, want)
}

func wantSchemaProperties(t *testing.T, s *Schema, err error, want []string) *Schema {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	members := newTree(t, string(s.JSON())).getMember("properties").members
	if len(members) != len(want) {
		t.Fatalf("got %d properties, want %d", len(members), len(want))
	}
	for i, m := range members {
		if got := fmt.Sprintf("%q:%s", m.name, m.value.raw); got != want[i] {
			t.Errorf(" got %s\nwant %s", got, want[i])
		}
	}
	return s
}

// The tags of types written for the official Go SDK are descriptions.
func TestSchemaTagPlainText(t *testing.T) {
	t.Parallel()
	type in struct {
		A string `json:"a" jsonschema:"What to look for, in the syntax of the search box"`
		B string `json:"b,omitempty" jsonschema:"How to order: created, updated or comments"`
		C int    `json:"c" jsonschema:"the limit, where n = 5 is usual"`
		D []int  `json:"d" jsonschema:"numbers"`
		E *in    `json:"e" jsonschema:"another one"`
		F string `json:"f" jsonschema:"required, even if empty"`
		G string `json:"g" jsonschema_description:"for other tools"`
		H string `json:"h" jsonschema:"the text" jsonschema_description:"wins"`
	}
	s := wantProperties[in](t, []string{
		`"a":{"type":"string","description":"What to look for, in the syntax of the search box"}`,
		`"b":{"type":"string","description":"How to order: created, updated or comments"}`,
		`"c":{"type":"integer","description":"the limit, where n = 5 is usual"}`,
		`"d":{"type":"array","description":"numbers","items":{"type":"integer"}}`,
		`"e":{"$ref":"#/$defs/in","description":"another one"}`,
		`"f":{"type":"string","description":"required, even if empty"}`,
		`"g":{"type":"string","description":"for other tools"}`,
		`"h":{"type":"string","description":"wins"}`,
	})
	if s.Properties()[1].Required {
		t.Error("b is required")
	}
}

// The tags of types written for mcp-go and invopop/jsonschema are translated.
func TestSchemaTagOptions(t *testing.T) {
	t.Parallel()
	type in struct {
		A string        `json:"a" jsonschema:"required,description=The city\\, in English,title=City,minLength=1,maxLength=9,pattern=^[a-z]{1\\,3}$,format=x,default=ber,example=par,example=rom"`
		B string        `json:"b,omitempty" jsonschema:"required"`
		C int           `json:"c" jsonschema:"minimum=0,maximum=9,multipleOf=3,enum=3,enum=6,default=6"`
		D float64       `json:"d" jsonschema:"exclusiveMinimum=-0.5, exclusiveMaximum=2"`
		E []string      `json:"e" jsonschema:"minItems=1,maxItems=3,uniqueItems=true,enum=a,enum=b\\,c,default=a,default=b\\,c"`
		F string        `json:"f" jsonschema:"Sort order, ascending first,enum=asc,enum=desc"`
		G string        `json:"g" jsonschema:"required,nullable"`
		H bool          `json:"h" jsonschema:"default=true,description=x=y"`
		I string        `json:"i" jsonschema:"description=wins" jsonschema_description:"loses"`
		J time.Duration `json:"j" jsonschema:"default=1m30s"`
		K []string      `json:"k" jsonschema:"default=[\"x\"]"`
		L *string       `json:"l" jsonschema:"required"`
	}
	s := wantProperties[in](t, []string{
		`"a":{"type":"string","title":"City","description":"The city, in English","format":"x","pattern":"^[a-z]{1,3}$","minLength":1,"maxLength":9,"examples":["par","rom"],"default":"ber"}`,
		`"b":{"type":"string"}`,
		`"c":{"type":"integer","minimum":0,"maximum":9,"multipleOf":3,"enum":[3,6],"default":6}`,
		`"d":{"type":"number","exclusiveMinimum":-0.5,"exclusiveMaximum":2}`,
		`"e":{"type":"array","items":{"type":"string","enum":["a","b,c"]},"minItems":1,"maxItems":3,"uniqueItems":true,"default":["a","b,c"]}`,
		`"f":{"type":"string","description":"Sort order, ascending first","enum":["asc","desc"]}`,
		`"g":{"anyOf":[{"type":"string"},{"type":"null"}]}`,
		`"h":{"type":"boolean","description":"x=y","default":true}`,
		`"i":{"type":"string","description":"wins"}`,
		`"j":{"type":"string","default":"1m30s"}`,
		`"k":{"type":"array","items":{"type":"string"},"default":["x"]}`,
		`"l":{"type":"string"}`,
	})
	for _, p := range s.Properties() {
		if !p.Required {
			t.Errorf("%s is not required", p.Name)
		}
	}
}

func TestSchemaTagInOutputAndForms(t *testing.T) {
	t.Parallel()
	type out struct {
		A *int `json:"a" jsonschema:"required,nullable,description=a number"`
	}
	output, err := ForOutput[out]()
	s := wantSchemaProperties(t, output, err, []string{`"a":{"description":"a number","anyOf":[{"type":"integer"},{"type":"null"}]}`})
	if !s.Properties()[0].Required {
		t.Error("a is not required")
	}
	type form struct {
		City string `json:"city" jsonschema:"description=Where to,enum=Berlin,enum=Rome"`
	}
	f, err := Form[form]()
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"type":"object","properties":{"city":{"type":"string","description":"Where to","enum":["Berlin","Rome"]}},"required":["city"]}`; string(f.JSON()) != want {
		t.Errorf(" got %s\nwant %s", f.JSON(), want)
	}
}

// The tags of this package win over the same statement in a jsonschema tag. The rest of it counts.
func TestSchemaTagConflicts(t *testing.T) {
	t.Parallel()
	type in struct {
		A string   `json:"a" doc:"own" jsonschema:"theirs"`
		B string   `json:"b" doc:"own" minLength:"2" jsonschema:"description=theirs,minLength=1,maxLength=5"`
		C string   `json:"c" enum:"x,y" default:"y" jsonschema:"enum=a,enum=b,default=a"`
		D []string `json:"d" default:"x,y" title:"own" jsonschema:"default=a,title=theirs,maxItems=2"`
		E string   `json:"e" enumTitles:"One,Two" jsonschema:"enum=1,enum=2"`
	}
	wantProperties[in](t, []string{
		`"a":{"type":"string","description":"own"}`,
		`"b":{"type":"string","description":"own","minLength":2,"maxLength":5}`,
		`"c":{"type":"string","enum":["x","y"],"default":"y"}`,
		`"d":{"type":"array","title":"own","items":{"type":"string"},"maxItems":2,"default":["x","y"]}`,
		`"e":{"type":"string","oneOf":[{"const":"1","title":"One"},{"const":"2","title":"Two"}]}`,
	})
}

func TestSchemaTagErrors(t *testing.T) {
	t.Parallel()
	type Filter struct {
		State string `json:"state" jsonschema:"oneof_required=a"`
	}
	type In struct{ Filter Filter }
	for _, c := range []struct {
		value any
		want  string
	}{
		{In{}, `schema: In.Filter.State: jsonschema tag "oneof_required=a": the option oneof_required is not supported`},
		{struct {
			A string `jsonschema:""`
		}{}, `schema: struct.A: jsonschema tag "": is empty: want a description or a list of options`},
		{struct {
			A string `jsonschema:"-"`
		}{}, `struct.A: jsonschema tag "-": cannot leave the field out: use json:"-"`},
		{struct {
			A string `jsonschema:"required,description=The city, in English"`
		}{}, `struct.A: jsonschema tag "required,description=The city, in English": "in English" is not an option; write \\, for a comma in a value`},
		{struct {
			A string `jsonschema:"title=x,words,enum=a,description=y"`
		}{}, `"words" is not an option`},
		{struct {
			A string `jsonschema:"a,b=c"`
		}{}, `the option b is not supported`},
		{struct {
			A string `jsonschema:"e=mc²"`
		}{}, `the option e is not supported`},
		{struct {
			A int `jsonschema:"minimum=1,minimum=2"`
		}{}, `minimum is given twice`},
		{struct {
			A int `jsonschema:"minLength=1"`
		}{}, `struct.A: jsonschema tag "minLength=1": minLength: applies to strings, not to int`},
		{struct {
			A int `jsonschema:"minimum=low"`
		}{}, `struct.A: jsonschema tag "minimum=low": minimum: must be a whole number`},
		{struct {
			A int `jsonschema:"enum=1,enum=x"`
		}{}, `jsonschema tag "enum=1,enum=x": enum: `},
		{struct {
			A string `jsonschema:"default=a,default=b"`
		}{}, `default: is given twice`},
		{struct {
			A []string `jsonschema:"uniqueItems=yes"`
		}{}, `uniqueItems: must be true or false`},
		{struct {
			A string `jsonschema_extras:"a=b"`
		}{}, `struct.A: jsonschema_extras tag "a=b": is not supported`},
	} {
		if _, err := cachedSchema(cacheKey{typ: reflect.TypeOf(c.value)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf(" got %v\nwant %s", err, c.want)
		}
	}
	type Out struct {
		A string `json:"a,omitempty" jsonschema:"required"`
	}
	want := `schema: Out.A: jsonschema tag "required": a field that encoding may leave out cannot be required`
	if _, err := ForOutput[Out](); err == nil || err.Error() != want {
		t.Errorf(" got %v\nwant %s", err, want)
	}
}
