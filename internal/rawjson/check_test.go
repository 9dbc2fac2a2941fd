package rawjson

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// valid reports whether Check should accept the data. It uses encoding/json, which checks neither
// UTF-8 nor depth.
func valid(data []byte) bool {
	return json.Valid(data) && utf8.Valid(data) && depth(data) <= MaxDepth
}

// depth counts the nesting of valid JSON.
func depth(data []byte) int {
	most, now, quoted := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

var texts = []string{
	// values
	`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `10`, `1.5`, `-0.5e+10`, `1E9`, `1e-400`, `""`, `"a"`, `{}`, `[]`, ` { } `, "\t[\r\n]\n",
	`{"a":1}`, `{"a":1,"b":[1,2,{"c":null}]}`, `[1,2,3]`, `[[],{}]`, `{"":""}`, `{"a":1,"a":2}`,
	`123456789012345678901234567890`, `1e99999`,
	// malformed words and numbers
	``, ` `, `nul`, `nulll`, `True`, `tru`, `fals`, `falsey`, `nan`, `-`, `+1`, `01`, `-01`, `00`, `.5`, `5.`, `1.e5`, `1e`, `1e+`, `1e-`, `--1`,
	`0x10`, `1_000`, `Infinity`, `-Infinity`, `1.2.3`, `1e5.5`, `1 2`, `12a`,
	// structure
	`{`, `}`, `[`, `]`, `{]`, `[}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{'a':1}`, `{"a" 1}`, `{"a"::1}`, `{1:2}`, `{"a":1`,
	`{"a"`, `{"a":`, `{"a":1,`, `{"a":1,"b"`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `[1,,2]`, `[]]`, `{}}`, `{} {}`, `"a" "b"`, `[1]x`, `null,`, `//c`, `/**/1`,
	// white space is four bytes and nothing else
	"\v1", "\f1", "\u00a01", "\u20281", "\ufeff1", "1\x00", "\x001", " \t\r\n1 \t\r\n",
	// strings
	`"`, `"a`, `"\"`, `"\\`, `"\\"`, `"\\\"`, `"\\\""`, `"\"\\"`, `"\b\f\n\r\t\/"`, `"\a"`, `"\x41"`, `"\u"`, `"\u1"`, `"\u12"`, `"\u123"`, `"\u1234"`,
	`"\u123g"`, `"\uABCD\uabcd"`, `"\U1234"`, `"\ud800"`, `"\ud83d\ude00"`, `"\ude00\ud83d"`, `"\u0000"`, "\"\\\n\"", "\"a\nb\"", "\"\x00\"", "\"\x1f\"",
	"\"\x20\"", "\"\x7f\"", "\"\u0080\"", "\"\u00e9\u20ac\U0001f600\"", "\"\u2028\u2029\"",
	// invalid UTF-8
	"\"\x80\"", "\"\xc3\"", "\"\xc3\x28\"", "\"\xe2\x82\"", "\"\xf0\x9f\x98\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xff\"", "\"\xfe\"",
	"\"\xef\xbf\xbd\"", "\"\xc3", "\"abcdefg\xc3", "{\"\xff\":1}", "\xff",
}

func TestCheckAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range texts {
		if err := CheckAll([]byte(text)); (err == nil) != valid([]byte(text)) {
			t.Errorf("CheckAll(%q) = %v, encoding/json says %v", text, err, valid([]byte(text)))
		}
	}
}

// Words of eight bytes are looked at together: each special byte at each offset of a word, with
// each neighbour that could borrow from it or carry into it.
func TestCheckStringsEightBytesAtATime(t *testing.T) {
	special := []string{
		`"`, `\`, `\"`, `\\`, `\n`, `\u00e9`, "\x00", "\x01", "\x1f", "\x20", "\x21", "\x23", "\x5b", "\x5d", "\x7e", "\x7f", "\x80", "\x81", "\xa0", "\xa2", "\xdc", "\xff",
		"\u00e9", "\u20ac", "\U0001f600", "\xc3", "\xe2\x82", "\xf0\x9f\x98",
	}
	for _, s := range special {
		for offset := range 18 {
			for after := range 10 {
				for _, fill := range []string{"a", "!", "\x7f", " ", "#", "]"} {
					text := []byte(`"` + strings.Repeat(fill, offset) + s + strings.Repeat(fill, after) + `"`)
					if err := CheckAll(text); (err == nil) != valid(text) {
						t.Fatalf("CheckAll(%q) = %v, encoding/json says %v", text, err, valid(text))
					}
					if err := CheckAll(text[:len(text)-1]); (err == nil) != valid(text[:len(text)-1]) {
						t.Fatalf("CheckAll(%q) = %v", text[:len(text)-1], err)
					}
				}
			}
		}
	}
}

func TestSpecialBytes(t *testing.T) {
	for c := range 256 {
		for offset := range 8 {
			for _, after := range []string{"!", "\x00", "\xff", "#", "["} {
				b := []byte(strings.Repeat("a", offset) + string([]byte{byte(c)}) + strings.Repeat(after, 7-offset))
				want := slices.IndexFunc(b, func(c byte) bool { return c < 0x20 || c >= 0x80 || c == '"' || c == '\\' })
				got := -1
				if m := specialBytes(binary.LittleEndian.Uint64(b)); m != 0 {
					got = bits.TrailingZeros64(m) / 8
				}
				if got != want {
					t.Fatalf("specialBytes(%q): first at %d, want %d", b, got, want)
				}
			}
		}
	}
}

func TestCheckReturnsTheEnd(t *testing.T) {
	for _, tt := range []struct {
		text     string
		pos, end int
	}{
		{`1,2`, 0, 1}, {`1,2`, 2, 3}, {`{"a":1} x`, 0, 7}, {`"a"b`, 0, 3}, {`[1]]`, 0, 3}, {`nullx`, 0, 4}, {`0123`, 0, -1}, {` 1`, 0, -1}, {`1`, 1, -1}, {`1`, 5, -1},
	} {
		end, err := Check([]byte(tt.text), tt.pos)
		if tt.end < 0 {
			if err == nil {
				t.Errorf("Check(%q, %d) = %d, want an error", tt.text, tt.pos, end)
			}
		} else if err != nil || end != tt.end {
			t.Errorf("Check(%q, %d) = %d, %v, want %d", tt.text, tt.pos, end, err, tt.end)
		}
	}
}

func TestMaxDepth(t *testing.T) {
	for _, tt := range []struct {
		open, close string
		levels      int // that one pair adds
	}{{"[", "]", 1}, {`{"a":`, "}", 1}, {`[{"a":`, "}]", 2}} {
		nested := func(n int) []byte {
			return []byte(strings.Repeat(tt.open, n) + "1" + strings.Repeat(tt.close, n))
		}
		if err := CheckAll(nested(MaxDepth / tt.levels)); err != nil {
			t.Errorf("%d × %s: %v", MaxDepth/tt.levels, tt.open, err)
		}
		var s *SyntaxError
		if err := CheckAll(nested(MaxDepth/tt.levels + 1)); !errors.Is(err, ErrDepth) || !errors.As(err, &s) {
			t.Errorf("%d × %s: %v", MaxDepth/tt.levels+1, tt.open, err)
		}
		if err := CheckAll([]byte(strings.Repeat(tt.open, 1_000_000))); !errors.Is(err, ErrDepth) {
			t.Errorf("a bomb of %s: %v", tt.open, err)
		}
	}
	flat := []byte(`[` + strings.Repeat(`[],`, 1000) + `{}]`)
	if err := CheckAll(flat); err != nil {
		t.Errorf("siblings do not nest: %v", err)
	}
}

func TestSyntaxErrorSaysWhere(t *testing.T) {
	for _, tt := range []struct {
		text   string
		offset int
		reason string
	}{
		{``, 0, "the input ends here"}, {`  `, 2, "the input ends here"}, {`{"a":x}`, 5, `'x' starts no value`}, {`{"a":1]`, 6, "expected ',' or '}'"},
		{`[1 2]`, 3, "expected ',' or ']'"}, {`1 2`, 2, "something follows the value"}, {"\"ab\xff\"", 3, "invalid UTF-8"}, {`"ab\q"`, 3, "malformed escape"},
		{"\"a\x01\"", 2, "control character in a string"}, {`["abc`, 1, "the string does not end"}, {`[01]`, 1, "malformed number"}, {`{"a" 1}`, 5, "expected ':'"},
		{`{1}`, 1, "expected a member name"}, {`nul`, 0, "expected null"},
	} {
		var s *SyntaxError
		if err := CheckAll([]byte(tt.text)); !errors.As(err, &s) || s.Offset != tt.offset || s.Reason != tt.reason {
			t.Errorf("CheckAll(%q) = %+v, want %d, %s", tt.text, err, tt.offset, tt.reason)
		} else if errors.Is(err, ErrDepth) {
			t.Errorf("CheckAll(%q) is about depth", tt.text)
		}
	}
}

func TestCheckAllocations(t *testing.T) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":[1,2.5e3,"\u00e9 é",{"b":null}]}}`)
	if n := testing.AllocsPerRun(100, func() {
		if CheckAll(text) != nil {
			t.Fatal("invalid")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
