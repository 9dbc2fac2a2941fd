package mcpwire_test

import (
	"net/textproto"
	"testing"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
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
		if got := mcpwire.EncodeHeaderValue(value); got != want {
			t.Errorf("%q is encoded as %q, want %q", value, got, want)
		}
		if got, ok := mcpwire.DecodeHeaderValue(want); !ok || got != value {
			t.Errorf("%q is decoded as %q, %v, want %q", want, got, ok, value)
		}
	}
	for _, literal := range []string{"=?base64?=", "=?base64?eA==", "eA==?=", " x"} {
		if got, ok := mcpwire.DecodeHeaderValue(literal); !ok || got != literal {
			t.Errorf("%q, which has not both marks, is decoded as %q, %v", literal, got, ok)
		}
	}
	for _, malformed := range []string{"=?base64?x?=", "=?base64?eA=?=", "=?base64?eA?=", "=?base64?eB==?=", "=?base64?e\r\nA==?=", "=?base64?/w==?=", "=?base64?=eA=?=", "=?base64?e-A=?=", "ä", "a\x00", "a\nb", "\x7f"} {
		if got, ok := mcpwire.DecodeHeaderValue(malformed); ok {
			t.Errorf("%q is decoded as %q", malformed, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { mcpwire.DecodeHeaderValue(mcpwire.EncodeHeaderValue("plain")) }); n != 0 {
		t.Errorf("%v allocations for a plain value", n)
	}
}

func FuzzHeaderValue(f *testing.F) {
	for _, seed := range []string{"", "plain", " x", "=?base64?eA==?=", "=?base64?x", "ä\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := mcpwire.EncodeHeaderValue(s)
		for _, c := range []byte(encoded) {
			if c != '\t' && (c < ' ' || c > '~') {
				t.Fatalf("%q is encoded as %q, which no header field may hold", s, encoded)
			}
		}
		if decoded, ok := mcpwire.DecodeHeaderValue(encoded); utf8.ValidString(s) && (!ok || decoded != s) {
			t.Fatalf("%q came back as %q, %v", s, decoded, ok)
		}
		mcpwire.DecodeHeaderValue(s)
	})
}

func TestHeaderArgument(t *testing.T) {
	for raw, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "0e99999999999999999999": "0", "-7": "-7", "10": "10", "42.0": "42", "4.20e1": "42",
		"1e2": "100", "1E+2": "100", "100e-2": "1", "0.05e2": "5", "9007199254740991": "9007199254740991",
		"90071992547409910e-1": "9007199254740991", "9007199254740992": "", "9007199254740991.4": "", "9007199254740991.6": "",
		"1.0000000000000000001": "", "0.5": "", "1e-400": "", "1.5e-99999999999999999999": "", "1e400": "", "1e99999999999999999999": "",
		"12345678901234567890": "", `"a\u00e9"`: "aé", " true ": "true", "false": "false", "null": "", "[1]": "", `{"a":1}`: "",
	} {
		if got, ok := mcpwire.HeaderArgument([]byte(raw)); got != want || ok != (want != "") {
			t.Errorf("%s is %q, %v, want %q", raw, got, ok, want)
		}
	}
}

func TestCanonicalField(t *testing.T) {
	for _, name := range []string{"", "a", "Mcp-Param-region", "MCP-PARAM-Region-CODE", "x--y", "-a-", "a1-b2", "mcp-param-a_b!c", "É"} {
		if got, want := mcpwire.CanonicalField(name), textproto.CanonicalMIMEHeaderKey(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
