package schema

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dowel-mcp/dowel/internal/toolheader"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// FuzzValidate holds the checker against the library, and its notion of
// well-formed JSON against jsontext's.
func FuzzValidate(f *testing.F) {
	for i, schema := range agreeSchemas {
		f.Add([]byte(schema), []byte(agreeValues[i%len(agreeValues)]))
		f.Add([]byte(schema), []byte(agreeValues[(i*7+3)%len(agreeValues)]))
	}
	f.Add([]byte(nestedSchema), []byte(nestedValue))
	for _, c := range malformed {
		f.Add([]byte(`{}`), []byte(c.text))
	}
	f.Fuzz(func(t *testing.T, raw, value []byte) {
		if len(raw) > 4096 || len(value) > 4096 {
			return
		}
		s, err := Compile(raw)
		if err != nil {
			return
		}
		got := s.Validate(value)
		var syntax *syntaxError
		if malformed := errors.As(got, &syntax); malformed == wellFormed(value) {
			t.Fatalf("value %q: %v", value, got)
		}
		if syntax != nil || errors.Is(got, ErrTooComplex) {
			return
		}
		tree, err := parseTree(value)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := tree.plain()
		if err != nil {
			return
		}
		if other, err := oracle(raw); err == nil {
			if want := other.Validate(plain); (got == nil) != (want == nil) {
				t.Fatalf("schema %q\nvalue %q\n got %v\nwant %v", raw, value, got, want)
			}
		}
	})
}

// wellFormed reports whether jsontext accepts the text, with the same bound on depth.
func wellFormed(text []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	depth := 0
	for tokens := 0; ; tokens++ {
		token, err := d.ReadToken()
		if err != nil {
			return tokens > 0 && depth == 0 && d.InputOffset() > 0 && onlySpace(text[d.InputOffset():])
		}
		switch token.Kind() {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth > maxDepth {
			return false
		}
		if depth == 0 {
			return onlySpace(text[d.InputOffset():])
		}
	}
}

func onlySpace(text []byte) bool { return len(bytes.Trim(text, " \n\r\t")) == 0 }

// FuzzCompile compares Compile with the library, which must accept every schema that Compile
// accepts. Neither Compile nor toolheader.List may panic.
func FuzzCompile(f *testing.F) {
	for _, schema := range agreeSchemas {
		f.Add([]byte(schema))
	}
	f.Add([]byte(nestedSchema))
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 4096 {
			return
		}
		_, _ = toolheader.List(raw)
		s, err := Compile(raw)
		if err != nil {
			return
		}
		if !bytes.Equal(s.JSON(), raw) {
			t.Fatalf("JSON() is %q, not %q", s.JSON(), raw)
		}
		_ = s.Properties()
		_, _ = s.ApplyDefaults([]byte(`{"a":1}`))
		for _, value := range agreeValues[:60] {
			_ = s.Validate([]byte(value))
		}
		if _, err := s.tree.plain(); err != nil {
			return // numbers that the library would take too long over
		}
		var elsewhere *jsonschema.LoadURLError // it takes a:/b for another URI than a:/b of a base
		if _, err := oracle(raw); err != nil && !errors.As(err, &elsewhere) {
			t.Fatalf("Compile accepts %q, and the library does not: %v", raw, err)
		}
	})
}
