package mcp_test

import (
	"testing"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
)

func TestHeaderValue(t *testing.T) {
	for value, want := range map[string]string{ // the first five are the specification's
		"us-west1":           "us-west1",
		"Hello, 世界":          "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":           "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":       "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"":                   "",
		"in ner":             "in ner",
		"a\tb":               "a\tb",
		"\ta":                "=?base64?CWE=?=",
		"=?base64?":          "=?base64?",
		"=?BASE64?eA==?=":    "=?BASE64?eA==?=",
		"=?base64?=":         "=?base64?PT9iYXNlNjQ/PQ==?=",
		"=?base64??=":        "=?base64?PT9iYXNlNjQ/Pz0=?=",
		"\x7f":               "=?base64?fw==?=",
	} {
		if got := mcp.EncodeHeaderValue(value); got != want {
			t.Errorf("%q is encoded as %q, want %q", value, got, want)
		}
		if got, ok := mcp.DecodeHeaderValue(want); !ok || got != value {
			t.Errorf("%q is decoded as %q, %v, want %q", want, got, ok, value)
		}
	}
	for _, literal := range []string{"=?base64?=", "=?base64?eA==", "eA==?=", " x"} {
		if got, ok := mcp.DecodeHeaderValue(literal); !ok || got != literal {
			t.Errorf("%q, which has not both marks, is decoded as %q, %v", literal, got, ok)
		}
	}
	for _, malformed := range []string{"=?base64?x?=", "=?base64?eA=?=", "=?base64?eA?=", "=?base64?eB==?=", "=?base64?e\r\nA==?=", "=?base64?/w==?=", "=?base64?=eA=?=", "=?base64?e-A=?=", "ä", "a\x00", "a\nb", "\x7f"} {
		if got, ok := mcp.DecodeHeaderValue(malformed); ok {
			t.Errorf("%q is decoded as %q", malformed, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { mcp.DecodeHeaderValue(mcp.EncodeHeaderValue("plain")) }); n != 0 {
		t.Errorf("%v allocations for a plain value", n)
	}
}

func FuzzHeaderValue(f *testing.F) {
	for _, seed := range []string{"", "plain", " x", "=?base64?eA==?=", "=?base64?x", "ä\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := mcp.EncodeHeaderValue(s)
		for _, c := range []byte(encoded) {
			if c != '\t' && (c < ' ' || c > '~') {
				t.Fatalf("%q is encoded as %q, which no header field may hold", s, encoded)
			}
		}
		if decoded, ok := mcp.DecodeHeaderValue(encoded); utf8.ValidString(s) && (!ok || decoded != s) {
			t.Fatalf("%q came back as %q, %v", s, decoded, ok)
		}
		mcp.DecodeHeaderValue(s)
	})
}
