package mcp_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

// The hand-written encoding equals the encoder's, field by field: a field that is added to a type
// must be added here too.
func TestWrittenByHandAsByTheEncoder(t *testing.T) {
	type plainTool mcp.Tool
	type plainAnnotations mcp.ToolAnnotations
	type plainImplementation mcp.Implementation
	for _, v := range variants[mcp.Tool]() {
		sameJSON(t, &v, (*plainTool)(&v))
	}
	for _, v := range variants[mcp.ToolAnnotations]() {
		sameJSON(t, &v, (*plainAnnotations)(&v))
	}
	for _, v := range variants[mcp.Implementation]() {
		sameJSON(t, &v, (*plainImplementation)(&v))
	}
}

// variants are the zero value, one with each field alone, and one with all.
func variants[T any]() []T {
	typ := reflect.TypeFor[T]()
	all := make([]T, typ.NumField()+2)
	full := reflect.ValueOf(&all[len(all)-1]).Elem()
	for i := range typ.NumField() {
		fill(reflect.ValueOf(&all[i]).Elem().Field(i))
		fill(full.Field(i))
	}
	return all
}

func fill(field reflect.Value) {
	switch v := field.Addr().Interface().(type) {
	case *string:
		*v = "a \"b\" <c> \u2028 \x01 \xff"
	case *json.RawMessage:
		*v = json.RawMessage("{ \"b\": 1.0,\n\t\"a\": [\"\\u0041\\/<\", 1e400],\r\n\"b\": null }")
	case *[]mcp.Icon:
		*v = []mcp.Icon{{Src: "data:,"}, {}}
	case **bool:
		*v = new(false)
	case **mcp.ToolAnnotations:
		*v = &mcp.ToolAnnotations{ReadOnlyHint: new(false)}
	case *mcp.Meta:
		*v = mcp.Meta{"b": json.RawMessage(`{ }`), "a": 1}
	default:
		panic(field.Type().String() + " has no sample yet")
	}
}

func sameJSON(t *testing.T, byHand, byEncoder any) {
	t.Helper()
	got, err1 := mcp.Encode(byHand)
	want, err2 := mcp.Encode(byEncoder)
	if err1 != nil || err2 != nil || string(got) != string(want) {
		t.Errorf("%T is written as\n%s, %v\nwant\n%s, %v", byHand, got, err1, want, err2)
	}
}

func TestToolWithBrokenSchemaIsNotWritten(t *testing.T) {
	for _, broken := range []string{"{", "", "{} {}", "nil"} {
		if got, err := mcp.Encode(&mcp.Tool{Name: "n", InputSchema: json.RawMessage(broken)}); err == nil {
			t.Errorf("the schema %q is written as %s", broken, got)
		}
	}
}
