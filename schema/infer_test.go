package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/toolheader"
	"github.com/go-json-experiment/json/jsontext"
)

type level int

func (l level) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "level-%d", l), nil }
func (l *level) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "level-%d", l)
	return err
}

type celsius struct{ degrees float64 }

func (celsius) JSONSchema() json.RawMessage     { return []byte(`{"type":"number","minimum":-273.15}`) }
func (c celsius) MarshalJSON() ([]byte, error)  { return json.Marshal(c.degrees) }
func (c *celsius) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &c.degrees) }
func (celsius) unexported()                     {}

type free struct{}

func (free) MarshalJSON() ([]byte, error) { return []byte(`[1,"x"]`), nil }
func (*free) UnmarshalJSON([]byte) error  { return nil }

type badDescriber struct{}

func (badDescriber) JSONSchema() json.RawMessage { return []byte(`{"$ref":"#/$defs/x"}`) }

type tree1 struct {
	Name string            `json:"name"`
	Kids []tree1           `json:"kids,omitempty"`
	By   map[string]*tree1 `json:"by,omitempty"`
}

type treeList []treeList

type mutualA struct {
	B *mutualB `json:"b"`
}
type mutualB struct {
	A []mutualA `json:"a"`
}

type generic[T any] struct {
	Value T           `json:"value"`
	Next  *generic[T] `json:"next"`
}

type embeddedBase struct {
	ID   string `json:"id" doc:"Base id"`
	Kind string `json:"kind"`
}

type embedding struct {
	embeddedBase
	*Outer
	Kind string `json:"kind" enum:"x,y"`
}

type Outer struct {
	Extra int `json:"extra"`
}

type text string

type namedByte byte

const closed = `,"additionalProperties":false`

func TestFor(t *testing.T) {
	str := `{"type":"string"}`
	for _, c := range []struct {
		value any
		want  string
	}{
		{"", str},
		{text(""), str},
		{true, `{"type":"boolean"}`},
		{1.5, `{"type":"number"}`},
		{float32(1), `{"type":"number"}`},
		{0, `{"type":"integer"}`},
		{int64(0), `{"type":"integer"}`},
		{int8(0), `{"type":"integer","minimum":-128,"maximum":127}`},
		{int16(0), `{"type":"integer","minimum":-32768,"maximum":32767}`},
		{int32(0), `{"type":"integer","minimum":-2147483648,"maximum":2147483647}`},
		{uint(0), `{"type":"integer","minimum":0}`},
		{uint64(0), `{"type":"integer","minimum":0}`},
		{uint8(0), `{"type":"integer","minimum":0,"maximum":255}`},
		{uint16(0), `{"type":"integer","minimum":0,"maximum":65535}`},
		{uint32(0), `{"type":"integer","minimum":0,"maximum":4294967295}`},
		{time.Time{}, `{"type":"string","format":"date-time"}`},
		{time.Second, str},
		{level(1), str},
		{netip.Addr{}, str},
		{celsius{}, `{"type":"number","minimum":-273.15}`},
		{free{}, `{}`},
		{json.RawMessage(nil), `{}`},
		{jsontext.Value(nil), `{}`},
		{[]byte(nil), `{"type":"string","contentEncoding":"base64"}`},
		{[16]byte{}, `{"type":"string","contentEncoding":"base64"}`},
		{[]namedByte(nil), `{"type":"array","items":{"type":"integer","minimum":0,"maximum":255}}`},
		{[]string(nil), `{"type":"array","items":{"type":"string"}}`},
		{[2]bool{}, `{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2}`},
		{[]any(nil), `{"type":"array","items":{}}`},
		{[]*int(nil), `{"type":"array","items":{"type":"integer"}}`},
		{new(*string), str},
		{map[string]int(nil), `{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`},
		{map[int]bool(nil), `{"type":"object","properties":{},"additionalProperties":{"type":"boolean"}}`},
		{map[text]any(nil), `{"type":"object","properties":{},"additionalProperties":{}}`},
		{map[level]string(nil), `{"type":"object","properties":{},"additionalProperties":{"type":"string"}}`},
		{struct{}{}, `{"type":"object","properties":{}` + closed + `}`},
		{struct {
			A string `json:"a"`
			B *int
			C bool    `json:"c,omitempty"`
			D float64 `json:",omitzero"`
			E string  `json:"-"`
			f string
		}{}, `{"type":"object","properties":{"a":{"type":"string"},"B":{"type":"integer"},"c":{"type":"boolean"},"D":{"type":"number"}},"required":["a"]` + closed + `}`},
		{embedding{}, `{"type":"object","properties":{"id":{"type":"string","description":"Base id"},"extra":{"type":"integer"},"kind":{"type":"string","enum":["x","y"]}},"required":["id","kind"]` + closed + `}`},
		{struct {
			Name string         `json:"name"`
			Rest map[string]int `json:",embed"`
		}{}, `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":{"type":"integer"}}`},
		{struct {
			Rest jsontext.Value `json:",embed"`
		}{}, `{"type":"object","properties":{}}`},
		{struct {
			Any any `json:"any"`
		}{}, `{"type":"object","properties":{"any":{}},"required":["any"]` + closed + `}`},
		{struct {
			N int `json:"n,string"`
		}{}, `{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]` + closed + `}`},
		{tree1{}, `{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree1"}},"by":{"type":"object","properties":{},"additionalProperties":{"$ref":"#/$defs/tree1"}}},"required":["name"]` + closed +
			`,"$defs":{"tree1":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree1"}},"by":{"type":"object","properties":{},"additionalProperties":{"$ref":"#/$defs/tree1"}}},"required":["name"]` + closed + `}}}`},
		{[]tree1(nil), `{"type":"array","items":{"$ref":"#/$defs/tree1"},"$defs":{"tree1":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree1"}},"by":{"type":"object","properties":{},"additionalProperties":{"$ref":"#/$defs/tree1"}}},"required":["name"]` + closed + `}}}`},
		{treeList(nil), `{"type":"array","items":{"$ref":"#/$defs/treeList"},"$defs":{"treeList":{"type":"array","items":{"$ref":"#/$defs/treeList"}}}}`},
		{struct {
			A mutualA `json:"a" doc:"The first"`
		}{}, `{"type":"object","properties":{"a":{"$ref":"#/$defs/mutualA","description":"The first"}},"required":["a"]` + closed +
			`,"$defs":{"mutualA":{"type":"object","properties":{"b":{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/mutualA"}}},"required":["a"]` + closed + `}}` + closed + `}}}`},
	} {
		s, err := cachedSchema(cacheKey{typ: reflect.TypeOf(c.value)})
		if err != nil {
			t.Errorf("%T: %v", c.value, err)
			continue
		}
		if got := string(s.JSON()); got != c.want {
			t.Errorf("%T:\n got %s\nwant %s", c.value, got, c.want)
		}
	}
}

func TestTags(t *testing.T) {
	type in struct {
		A string         `json:"a" doc:"A \"doc\"" title:"T" format:"email" pattern:"^\\S+$" minLength:"1" maxLength:"9" default:"x" example:"y" header:"X-A"`
		B int            `json:"b" minimum:"1" maximum:"9" multipleOf:"2" enum:"2,4" default:"4" examples:"[2,4]"`
		C float64        `json:"c" exclusiveMinimum:"-0.5" exclusiveMaximum:"1e3" enum:"1.5,2"`
		D []string       `json:"d" enum:"a,b" minItems:"1" maxItems:"2" uniqueItems:"true" default:"a,b"`
		E []int          `json:"e" minimum:"1" default:"[3]"`
		F *string        `json:"f" enum:"a,b" enumTitles:"A,B" default:"b"`
		G []string       `json:"g" enum:"a,b" enumTitles:"A,B" title:"G"`
		H bool           `json:"h" default:"true" header:"Flag"`
		I time.Duration  `json:"i" default:"1m30s"`
		J time.Time      `json:"j" example:"2026-07-28T00:00:00Z"`
		K uint8          `json:"k" maximum:"10" header:"k"`
		L map[string]int `json:"l" doc:"counts" default:"{\"x\":1}"`
		M level          `json:"m" enum:"level-1,level-2"`
		N celsius        `json:"n" doc:"cold" default:"-1"`
	}
	want := []string{
		`"a":{"type":"string","title":"T","description":"A \"doc\"","format":"email","pattern":"^\\S+$","minLength":1,"maxLength":9,"examples":["y"],"x-mcp-header":"X-A","default":"x"}`,
		`"b":{"type":"integer","minimum":1,"maximum":9,"multipleOf":2,"enum":[2,4],"examples":[2,4],"default":4}`,
		`"c":{"type":"number","exclusiveMinimum":-0.5,"exclusiveMaximum":1e3,"enum":[1.5,2]}`,
		`"d":{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":2,"uniqueItems":true,"default":["a","b"]}`,
		`"e":{"type":"array","items":{"type":"integer","minimum":1},"default":[3]}`,
		`"f":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"b"}`,
		`"g":{"type":"array","title":"G","items":{"type":"string","anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}`,
		`"h":{"type":"boolean","x-mcp-header":"Flag","default":true}`,
		`"i":{"type":"string","default":"1m30s"}`,
		`"j":{"type":"string","format":"date-time","examples":["2026-07-28T00:00:00Z"]}`,
		`"k":{"type":"integer","minimum":0,"maximum":10,"x-mcp-header":"k"}`,
		`"l":{"type":"object","description":"counts","properties":{},"additionalProperties":{"type":"integer"},"default":{"x":1}}`,
		`"m":{"type":"string","enum":["level-1","level-2"]}`,
		`"n":{"type":"number","description":"cold","minimum":-273.15,"default":-1}`,
	}
	s, err := For[in]()
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range newTree(t, string(s.JSON())).getMember("properties").members {
		if got := fmt.Sprintf("%q:%s", m.name, m.value.raw); got != want[i] {
			t.Errorf(" got %s\nwant %s", got, want[i])
		}
	}
	headers, err := toolheader.List(s.JSON())
	if want := []toolheader.Header{{Name: "X-A", Path: []string{"a"}}, {Name: "Flag", Path: []string{"h"}}, {Name: "k", Path: []string{"k"}}}; err != nil || !reflect.DeepEqual(headers, want) {
		t.Errorf("headers %v, %v", headers, err)
	}
	if p := s.Properties()[0]; p.Name != "a" || p.Title != "T" || p.Description != `A "doc"` || p.Type != "string" || !p.Required || s.Properties()[5].Required {
		t.Errorf("property %+v", p)
	}
}

func TestForErrors(t *testing.T) {
	type Filter struct{ Callback func() }
	type In struct{ Filter Filter }
	type Deep struct{ A []map[string]*In }
	// Made at run time, because go vet finds it otherwise.
	dup := reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"x"`},
		{Name: "B", Type: reflect.TypeFor[string](), Tag: `json:"x"`},
	})
	type E1 struct{ X string }
	type E2 struct{ X string }
	type Ambiguous struct {
		E1
		E2
	}
	for _, c := range []struct {
		value any
		want  string
	}{
		{In{}, "schema: In.Filter.Callback: func() cannot be expressed as JSON"},
		{Deep{}, "schema: Deep.A[][].Filter.Callback: func() cannot be expressed as JSON"},
		{struct{ C chan int }{}, "schema: struct.C: chan int cannot be expressed as JSON"},
		{complex(1, 1), "schema: complex128: complex128 cannot be expressed as JSON"},
		{struct{ M map[float64]int }{}, "schema: struct.M: map[float64]int cannot be expressed as JSON: its keys are neither strings nor integers"},
		{struct{ M map[bool]int }{}, "its keys are neither strings nor integers"},
		{struct{ N json.Number }{}, "schema: struct.N: json.Number is a string to the decoder"},
		{struct{ E error }{}, "schema: struct.E: error is an interface with methods"},
		{struct{ M encoding.TextMarshaler }{}, "is an interface with methods"},
		{reflect.Zero(dup).Interface(), `schema: struct: Go struct fields A and B conflict over JSON object name "x"`},
		{Ambiguous{}, `schema: Ambiguous.E2.X: the name "X" is also that of Ambiguous.E1.X`},
		{struct {
			X int `json:"x,omitEmpty"`
		}{}, "invalid appearance of `omitEmpty`"},
		{struct{ text }{}, "must be explicitly given a JSON name"},
		{struct {
			X bool `json:"x,string"`
		}{}, "schema: struct.X: json option string applies to numbers, not to bool"},
		{badDescriber{}, "must not have $ref"},
		{struct {
			X int `minLength:"1"`
		}{}, `schema: struct.X: minLength tag "1": applies to strings, not to int`},
		{struct {
			X string `minimum:"1"`
		}{}, `minimum tag "1": applies to numbers, not to string`},
		{struct {
			X string `minItems:"1"`
		}{}, `applies to slices and arrays, not to string`},
		{struct {
			X string `minLength:"-1"`
		}{}, `minLength tag "-1": must be a whole number, not negative`},
		{struct {
			X int `minimum:"1.5"`
		}{}, `minimum tag "1.5": must be a whole number`},
		{struct {
			X float64 `minimum:"one"`
		}{}, `minimum tag "one": must be a number`},
		{struct {
			X uint8 `maximum:"256"`
		}{}, `maximum tag "256": is beyond the maximum 255 of uint8`},
		{struct {
			X []int `uniqueItems:"yes"`
		}{}, `uniqueItems tag "yes": must be true or false`},
		{struct {
			X string `pattern:"("`
		}{}, `pattern`},
		{struct {
			X int `enum:"1,x"`
		}{}, `schema: struct.X: enum tag "1,x"`},
		{struct {
			X int8 `enum:"1,300"`
		}{}, `is not a int8`},
		{struct {
			X string `enum:"a,a"`
		}{}, `"a" is in it twice`},
		{struct {
			X bool `enum:"true"`
		}{}, `applies to strings, numbers and slices of them, not to bool`},
		{struct {
			X string `enum:"a,b" enumTitles:"A"`
		}{}, `there are 1 titles for 2 values`},
		{struct {
			X string `enumTitles:"A"`
		}{}, `there is no enum tag beside it`},
		{struct {
			X string `enum:"a,b" default:"c"`
		}{}, `default tag "c": must be one of "a", "b" (got the string "c")`},
		{struct {
			X int `default:"x"`
		}{}, `schema: struct.X: default tag "x"`},
		{struct {
			X time.Duration `default:"soon"`
		}{}, `default tag "soon": is not a time.Duration`},
		{struct {
			X int `examples:"1,2"`
		}{}, `must be a JSON array`},
		{struct {
			X int `examples:"[\"a\"]"`
		}{}, `"a" is not a int`},
		{struct {
			X string `header:"a b"`
		}{}, `header tag "a b": is not an HTTP field name`},
		{struct {
			X string `header:"A"`
			Y struct {
				Z int `header:"a"`
			}
		}{}, `schema: struct.Y.Z: header tag "a": is also that of struct.X`},
		{struct {
			X float64 `header:"A"`
		}{}, `applies to strings, integers and booleans, not to float64`},
		{struct {
			X []struct {
				Y string `header:"A"`
			}
		}{}, `schema: struct.X[].Y: header tag "A": a header cannot come from within a slice`},
	} {
		_, err := cachedSchema(cacheKey{typ: reflect.TypeOf(c.value)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T:\n got %v\nwant %s", c.value, err, c.want)
		}
	}
}

// The encodings of values, also of zero values, match the output schema and can be decoded again.
func TestOutputMatches(t *testing.T) {
	one := 1
	full := everything{
		embeddedBase: embeddedBase{"id", "kind"}, Str: "s", Ptr: &one, Keep: &embeddedBase{}, Dur: 90 * time.Minute, Time: time.Unix(0, 0).UTC(),
		Bytes: []byte{1, 2, 255}, List: []*celsius{{20}, nil}, Map: map[string][]level{"b": {1}, "a": nil}, Any: map[string]any{"d": "x"}, Raw: json.RawMessage(`{"b":1}`),
		Tree: tree1{Name: "t", Kids: []tree1{{}}, By: map[string]*tree1{"x": nil, "y": {}}}, Gen: generic[int]{1, &generic[int]{}}, U8: 3,
	}
	s, err := ForOutput[everything]()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []everything{{Str: "s"}, full} {
		b, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(b); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		var back everything
		if err := Decode(b, &back); err != nil {
			t.Fatal(err)
		}
		if again, err := Encode(back); err != nil || string(again) != string(b) {
			t.Errorf("%s became %s (%v)", b, again, err)
		}
	}
}

func TestInputIsStrict(t *testing.T) {
	s, err := For[embedding]()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate([]byte(`{"id":"1","kind":"x","extra":3}`)); err != nil {
		t.Error(err)
	}
	if err := s.Validate([]byte(`{"id":"1","Kind":"x"}`)); err == nil || err.Error() != `unknown property "Kind"; did you mean "kind"?; missing required property "kind"` {
		t.Error(err)
	}
}

func TestInferredOnce(t *testing.T) {
	var group sync.WaitGroup
	schemas := make([]*Schema, 8)
	for i := range schemas {
		group.Go(func() { schemas[i], _ = For[everything]() })
	}
	group.Wait()
	for _, s := range schemas {
		if s == nil || s != schemas[0] {
			t.Fatal("inferred more than once")
		}
	}
	if out, _ := ForOutput[everything](); out == schemas[0] {
		t.Error("input and output share a schema")
	}
}

// A struct of structs is refused if its written-out form grows without bound.
func TestInferenceIsBounded(t *testing.T) {
	typ := reflect.TypeFor[struct{ X int }]()
	for range 20 {
		typ = reflect.StructOf([]reflect.StructField{{Name: "A", Type: typ}, {Name: "B", Type: typ}})
	}
	if _, err := cachedSchema(cacheKey{typ: typ}); err == nil || !strings.Contains(err.Error(), "more than 8192 subschemas") {
		t.Error(err)
	}
}
