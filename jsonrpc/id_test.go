package jsonrpc

import (
	"errors"
	"math"
	"testing"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// Every id that can be read is written back byte for byte, and equals itself read again.
func TestIDsEchoByteForByte(t *testing.T) {
	for _, text := range []string{
		`0`, `1`, `-1`, `42`, `999999999999999999`, `-999999999999999999`, `1000000000000000000`, `9223372036854775807`, `-9223372036854775808`,
		`9007199254740993`, `123456789012345678901234567890`, `1.5`, `1.0`, `-0`, `0.0`, `1e3`, `1E+3`, `-1.25e-7`,
		`"a"`, `""`, `"1"`, `"\u0061"`, `"\""`, `"\\"`, `"é"`, `"\u00e9"`, `"\ud800"`, `"a b/c"`,
	} {
		id, err := ParseID([]byte(text))
		if err != nil || id.String() != text || id.IsZero() {
			t.Errorf("ParseID(%s) = %s, %v", text, id, err)
		}
		again, _ := ParseID([]byte(text))
		if again != id {
			t.Errorf("%s does not equal itself", text)
		}
	}
}

func TestIDsThatAreNone(t *testing.T) {
	for _, text := range []string{``, `null`, `true`, `false`, `[]`, `[1]`, `{}`, `{"id":1}`} {
		id, err := ParseID([]byte(text))
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeInvalidRequest || !id.IsZero() {
			t.Errorf("ParseID(%s) = %s, %v", text, id, err)
		}
	}
	if got := (ID{}).String(); got != "null" {
		t.Errorf("the zero ID is written as %s", got)
	}
}

func TestIDsDifferByKindAndText(t *testing.T) {
	different := []string{`1`, `"1"`, `1.0`, `01`, `-1`, `"a"`, `"A"`, `""`, `0`, `-0`}
	seen := map[ID]string{{}: "no id"}
	for _, text := range different {
		id, _ := ParseID([]byte(text))
		if other, taken := seen[id]; taken {
			t.Errorf("%s equals %s", text, other)
		}
		seen[id] = text
	}
}

func TestMadeIDs(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 999_999_999_999_999_999, math.MaxInt64, math.MinInt64} {
		id := IntID(n)
		if got, ok := id.Int(); got != n || !ok || id.IsZero() {
			t.Errorf("IntID(%d).Int() = %d, %v", n, got, ok)
		}
		if back, err := ParseID(id.Append(nil)); err != nil || back.String() != id.String() {
			t.Errorf("%d comes back as %s, %v", n, back, err)
		}
	}
	for _, s := range []string{"", "a", "\"\\\n", "é\u2028"} {
		id, err := ParseID(rawjson.AppendString(nil, s))
		if _, ok := id.Int(); ok || id.IsZero() || err != nil {
			t.Errorf("%q is not a string id: %v", s, err)
		}
		if back, err := ParseID(id.Append(nil)); err != nil || back != id {
			t.Errorf("%q comes back as %s, %v", s, back, err)
		}
	}
	if id, _ := ParseID([]byte("7")); id != IntID(7) {
		t.Error("an id that was read differs from one that was made")
	}
}
