package schema

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const smallSchema = `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"],"additionalProperties":false}`

const nestedSchema = `{"type":"object","properties":{
	"query":{"type":"string","minLength":1,"maxLength":200},
	"limit":{"type":"integer","minimum":1,"maximum":100},
	"filter":{"type":"object","properties":{
		"tags":{"type":"array","items":{"type":"string"}},
		"range":{"type":"object","properties":{"from":{"type":"number"},"to":{"type":"number"}},"required":["from","to"],"additionalProperties":false},
		"kind":{"type":"string","enum":["a","b","c"]}},"required":["tags"],"additionalProperties":false},
	"items":{"type":"array","maxItems":100,"items":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"},"ok":{"type":"boolean"}},"required":["id","name"],"additionalProperties":false}}
	},"required":["query"],"additionalProperties":false}`

const nestedValue = `{"query":"weather in Berlin","limit":25,"filter":{"tags":["one","two","three"],"range":{"from":1.5,"to":99.25},"kind":"b"},` +
	`"items":[{"id":1,"name":"first","ok":true},{"id":2,"name":"second","ok":false},{"id":3,"name":"third","ok":true}]}`

const bigSchema = `{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"},"score":{"type":"number"},"note":{"type":"string"}},"required":["id","name"],"additionalProperties":false}}},"required":["rows"],"additionalProperties":false}`

// bigValue is about 1 MiB.
var bigValue = func() []byte {
	var b bytes.Buffer
	b.WriteString(`{"rows":[`)
	for i := 0; b.Len() < 1<<20; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"row number %d","score":%d.5,"note":"%s"}`, i, i, i%100, strings.Repeat("words and ", 8))
	}
	b.WriteString(`]}`)
	return b.Bytes()
}()

func mustCompile(tb testing.TB, raw string) *Schema {
	tb.Helper()
	s, err := Compile([]byte(raw))
	if err != nil {
		tb.Fatalf("Compile(%s): %v", raw, err)
	}
	return s
}

func BenchmarkValidate(b *testing.B) {
	for _, bench := range []struct {
		name, schema string
		value        []byte
	}{
		{"small", smallSchema, []byte(`{"message":"hi"}`)},
		{"nested", nestedSchema, []byte(nestedValue)},
		{"1MiB", bigSchema, bigValue},
		{"1MiB/any", `{}`, bigValue},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := mustCompile(b, bench.schema)
			b.SetBytes(int64(len(bench.value)))
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Validate(bench.value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
