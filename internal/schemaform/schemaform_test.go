package schemaform_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/schemaform"
)

// outline writes a form in one line: kinds, names, ! for required, ? for nullable.
func outline(f *schemaform.Field) string {
	var b strings.Builder
	if f.Name != "" {
		b.WriteString(f.Name)
		if f.Required {
			b.WriteByte('!')
		}
		b.WriteByte(':')
	}
	b.WriteString(string(f.Kind))
	if f.Nullable {
		b.WriteByte('?')
	}
	for _, o := range f.Choices {
		b.WriteString(" " + string(o.Value))
		if o.Title != "" {
			b.WriteString("=" + o.Title)
		}
	}
	list := func(open, end string, all []*schemaform.Field) {
		if len(all) == 0 {
			return
		}
		b.WriteString(open)
		for i, child := range all {
			if i > 0 {
				b.WriteString(", ")
			}
			if open == "(" {
				b.WriteString("'" + child.Title + "' ")
			}
			b.WriteString(outline(child))
		}
		b.WriteString(end)
	}
	list("{", "}", f.Properties)
	list("[", "]", f.Tuple)
	list("(", ")", f.Variants)
	if f.Items != nil {
		b.WriteString("*" + outline(f.Items))
	}
	if f.Extra != nil && f.Extra.Kind != schemaform.Any {
		b.WriteString("+" + outline(f.Extra))
	}
	if f.Rules != "" {
		b.WriteString(" <" + f.Rules + ">")
	}
	return b.String()
}

func TestBuild(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, schema, want string }{
		{"nothing", `{}`, `any`},
		{"true", `true`, `any`},
		{"false", `false`, `never`},
		{"scalars", `{"type":"object","properties":{"s":{"type":"string","minLength":1,"maxLength":9},"n":{"type":"number","minimum":0},"i":{"type":"integer","maximum":12345678901234567890},"b":{"type":"boolean"},"x":{"type":"null"}},"required":["s"]}`,
			`object{s!:string <1 to 9 characters>, n:number <at least 0>, i:integer <at most 12345678901234567890>, b:boolean, x:null}`},
		{"required without a schema", `{"type":"object","required":["a"]}`, `object{a!:any}`},
		{"nullable", `{"properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}]},"c":{"enum":["x",null]},"d":{"type":"string","nullable":true}}}`,
			`object{a:string?, b:integer?, c:choice? "x", d:string?}`},
		{"types", `{"type":["string","integer","null"],"minLength":2}`, `variants?('text' string <at least 2 characters>, 'integer' integer)`},
		{"choices", `{"oneOf":[{"const":"a","title":"A"},{"const":1}]}`, `choice "a"=A 1`},
		{"enum names", `{"enum":["a","b"],"enumNames":["A","B"]}`, `choice "a"=A "b"=B`},
		{"const", `{"const":{"k":1}}`, `choice {"k":1}`},
		{"rows", `{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}},"minItems":1,"uniqueItems":true}`, `array*object{a:string} <at least 1 items, no two alike>`},
		{"tuple", `{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false}`, `array[number, string]`},
		{"old tuple", `{"type":"array","items":[{"type":"number"}],"additionalItems":{"type":"boolean"}}`, `array[number]*boolean`},
		{"map", `{"type":"object","additionalProperties":{"type":"integer"}}`, `object+integer`},
		{"pattern map", `{"type":"object","patternProperties":{"^x-":{"type":"string"}}}`, `object+string`},
		{"closed", `{"type":"object","properties":{"a":true},"additionalProperties":false}`, `object{a:any}`},
		{"reference", `{"$ref":"#/$defs/a%20b","$defs":{"a b":{"type":"string"}}}`, `string`},
		{"anchor", `{"$ref":"#x","$defs":{"q":{"$anchor":"x","type":"string"}}}`, `string`},
		{"missing reference", `{"$ref":"#/nowhere","title":"T"}`, `any`},
		{"foreign reference", `{"$ref":"https://example.com/x","type":"string"}`, `string`},
		{"allOf", `{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"number"},"a":{"maxLength":3}}}]}`, `object{a!:string <at most 3 characters>, b:number}`},
		{"condition", `{"properties":{"a":{"type":"string"}},"if":{"properties":{"a":{"const":"x"}}},"then":{"properties":{"b":{"type":"number"}},"required":["b"]},"else":{"properties":{"c":{"type":"number"}}}}`,
			`object{a:string, b:number, c:number}`},
		{"variants", `{"oneOf":[{"properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},{"$ref":"#/$defs/Square"}],"$defs":{"Square":{"type":"object","properties":{"side":{"type":"number"}}}}}`,
			`variants('kind: circle' object{kind!:choice "circle", r!:number}, 'Square' object{side:number})`},
		{"variants with a base", `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"oneOf":[{"properties":{"a":{"type":"number"}}},{"properties":{"b":{"type":"number"}},"title":"B"}]}`,
			`variants('object with a, id' object{a:number, id!:string}, 'B' object{b:number, id!:string})`},
		{"variants behind a reference", `{"$ref":"#/$defs/X","$defs":{"X":{"properties":{"id":{"type":"string"}},"anyOf":[{"required":["id"]},{"properties":{"b":{"type":"number"}}}]}}}`,
			`variants('object with id' object{id!:string}, 'object with b, id' object{b:number, id:string})`},
		{"recursion", `{"properties":{"v":{"type":"string"},"next":{"$ref":"#"}}}`, `object{v:string, next:lazy}`},
		{"recursion of lists", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/n"}}}}}}`, `object{kids:array*lazy}`},
		{"recursion with null", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}}}}}`, `object{next:lazy?}`},
		{"a schema that is itself", `{"$ref":"#"}`, `lazy`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f, err := schemaform.Build(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			if got := outline(f); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A lazy field opens, as deep as the value is.
func TestLazy(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"string"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}}}}}`)
	var at []string
	for range 3 {
		f, err := schemaform.Build(schema, at...)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Properties) != 2 || f.Properties[1].Kind != schemaform.Lazy {
			t.Fatalf("%v: %s", at, outline(f))
		}
		at = f.Properties[1].At
	}
	if _, err := schemaform.Build(schema, "/nowhere"); err == nil {
		t.Error("a place that does not exist")
	}
}

// The model of a schema that is large, deep or wide is small.
func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	wide := `{"properties":{` + strings.Repeat(`"a":{"type":"object"},`, 20_000) + `"z":{}}}`
	many := `{"oneOf":[` + strings.Repeat(`{"type":"object","properties":{"a":{"oneOf":[{"$ref":"#"},{"$ref":"#"}]}}},`, 5_000) + `{}]}`
	deep := strings.Repeat(`{"properties":{"a":`, 400) + `{}` + strings.Repeat(`}}`, 400)
	loop := `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#"}]}}}`
	fan := `{"$defs":{"a":{"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/b"},`, 500) + `{}]},"b":{"allOf":[` + strings.Repeat(`{"allOf":[{},{},{}]},`, 500) + `{}]}},"properties":{` + `"x":{"$ref":"#/$defs/a"}}}`
	far := `{"padding":"` + strings.Repeat("x", 900_000) + `","$defs":{"z":{"type":"string"}},"properties":{`
	for i := range 300 {
		far += fmt.Sprintf(`"p%d":{"allOf":[%s{}]},`, i, strings.Repeat(`{"$ref":"#/$defs/z"},{"$ref":"#/$defs/z"},`, 3))
	}
	far += `"q":{}}}`
	for name, schema := range map[string]string{"far": far, "wide": wide, "many": many, "deep": deep, "loop": loop, "fan": fan} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := schemaform.Build(json.RawMessage(schema))
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(f)
			if err != nil || len(text) > 300_000 {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
	for _, schema := range []string{``, `{`, `{"a":` + strings.Repeat(" ", 2<<20) + `1}`} {
		if _, err := schemaform.Build(json.RawMessage(schema)); err == nil {
			t.Errorf("a schema of %d bytes is accepted", len(schema))
		}
	}
}
