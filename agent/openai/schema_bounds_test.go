package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A large schema with many branches, references or members takes time in proportion to its length.
func TestSchemaBounded(t *testing.T) {
	list := func(n int, item func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = item(i)
		}
		return strings.Join(all, ",")
	}
	properties := func(prefix string) string {
		return list(5_000, func(i int) string { return fmt.Sprintf(`"%s%d":{}`, prefix, i) })
	}
	same := func(int) string { return `{"$ref":"#/$defs/a"}` }
	for name, schema := range map[string]string{
		"one reference, often":    `{"$defs":{"a":{"properties":{` + properties("a") + `}}},"allOf":[` + list(5_000, same) + `]}`,
		"many references":         `{"$defs":{` + list(5_000, func(i int) string { return fmt.Sprintf(`"a%d":{"properties":{"p%d":{}},"required":["p%d"]}`, i, i, i) }) + `},"allOf":[` + list(5_000, func(i int) string { return fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i) }) + `]}`,
		"many branches":           `{"properties":{` + properties("a") + `},"anyOf":[` + list(5_000, func(i int) string { return fmt.Sprintf(`{"properties":{"b%d":{}}}`, i) }) + `]}`,
		"a circle":                `{"$defs":{"a":{"allOf":[` + list(20, same) + `]}},"allOf":[{"$ref":"#/$defs/a"}]}`,
		"many members":            `{"$ref":"#/$defs/a","$defs":{"a":{` + properties("a") + `}},` + properties("b") + `}`,
		"a long way":              `{"type":"object","allOf":[{"$ref":"#` + strings.Repeat("/a", 100_000) + `"}]}`,
		"many required, strict":   `{"type":"object","additionalProperties":false,"properties":{` + properties("a") + `},"required":[` + list(5_000, func(i int) string { return fmt.Sprintf(`"a%d"`, i) }) + `]}`,
		"many required, demanded": `{"allOf":[{"required":[` + list(5_000, func(i int) string { return fmt.Sprintf(`"a%d"`, i) }) + `]},{"required":[` + list(5_000, func(i int) string { return fmt.Sprintf(`"b%d"`, i) }) + `]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			out, _, err := acceptSchema(json.RawMessage(schema))
			if err != nil || !json.Valid(out) {
				t.Errorf("%v", err)
			}
			fitsStrict(out)
			took := time.Since(began)
			t.Logf("%d bytes in %v", len(schema), took)
			if took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}
