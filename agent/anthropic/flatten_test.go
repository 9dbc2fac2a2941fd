package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// many is a list of n references.
func many(n int, ref string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/`+ref+`"},`, n), ",") + "]"
}

// Definitions that refer to one another take little time, however often they do. A schema that
// expands too far is left out, with a reason. A cycle is not.
func TestFlattenBounded(t *testing.T) {
	var chain, distinct, refs []string
	for i := range 40 {
		chain = append(chain, fmt.Sprintf(`"d%d":{"allOf":%s}`, i, many(4, fmt.Sprint("d", (i+1)%40))))
	}
	for i := range 400 {
		distinct = append(distinct, fmt.Sprintf(`"d%d":{"properties":{"p%d":{"description":"%s"}}}`, i, i, strings.Repeat("x", 1000)))
		refs = append(refs, fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i))
	}
	var names []string
	for i := range 50_000 {
		names = append(names, fmt.Sprintf(`"a name %d"`, i))
	}
	required := strings.Join(names, ",")
	large := fmt.Sprintf(`"large":{"title":%q}`, strings.Repeat("x", 1<<20))
	for _, tt := range []struct {
		name, schema string
		left         bool
	}{
		{"a circle", `{"$defs":{"a":{"allOf":` + many(20, "a") + `}},"allOf":` + many(1, "a") + `}`, false},
		{"a circle of alternatives", `{"$defs":{"a":{"anyOf":` + many(20, "a") + `}},"anyOf":` + many(1, "a") + `}`, false},
		{"a circle of two", `{"$defs":{"a":{"oneOf":` + many(20, "b") + `},"b":{"anyOf":` + many(20, "a") + `}},"anyOf":` + many(1, "a") + `}`, false},
		{"more each time", `{"$defs":{` + strings.Join(chain, ",") + `},"allOf":` + many(1, "d0") + `}`, true},
		{"all of many", `{"$defs":{` + strings.Join(distinct, ",") + `},"allOf":[` + strings.Join(refs, ",") + `]}`, false},
		{"any of many", `{"$defs":{` + strings.Join(distinct, ",") + `},"anyOf":[` + strings.Join(refs, ",") + `]}`, false},
		{"more than many", `{"$defs":{"a":{}},"anyOf":` + many(1001, "a") + `}`, true},
		{"one that is large, often", `{"$defs":{` + large + `},"anyOf":` + many(900, "large") + `}`, true},
		{"many names required", `{"anyOf":[{"required":[` + required + `]},{"required":[` + required + `]}]}`, false},
		{"a long way", `{"$ref":"#` + strings.Repeat("/a", 100_000) + `"}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			p := applyRules(mcp.Tool{Name: "tool", InputSchema: json.RawMessage(tt.schema)})
			t.Logf("%d bytes in %v", len(tt.schema), time.Since(began))
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %v", took)
			}
			if left := p.tool == nil; left != tt.left || left && !strings.Contains(p.why, "more than 1000 schemas") {
				t.Errorf("left out: %v %.200s", left, p.why)
			}
		})
	}
}

// A definition that refers to itself still gives its properties.
func TestFlattenCircle(t *testing.T) {
	p := applyRules(mcp.Tool{Name: "tool", InputSchema: json.RawMessage(`{"$defs":{"a":{"properties":{"x":{"type":"string"}},"required":["x"],"allOf":[{"$ref":"#/$defs/b"}]},
		"b":{"properties":{"y":{}},"allOf":[{"$ref":"#/$defs/a"}]}},"allOf":[{"$ref":"#/$defs/a"}]}`)})
	if p.tool == nil {
		t.Fatal(p.why)
	}
	raw, err := json.Marshal(p.tool)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"properties":{"x":{"type":"string"},"y":{}}`, `"required":["x"]`, `valid against this JSON Schema: {\"allOf\":`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
}
