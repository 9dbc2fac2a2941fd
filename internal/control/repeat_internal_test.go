package control

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// A JSON text has the lines of an ordinary indentation, up to a depth and a number at which
// they would need much more memory than the text.
func TestIndentedLines(t *testing.T) {
	for _, raw := range []string{`{"a":[1,{"b":"x, {\"y\": []}"}],"c":{ },"d":[],"e":null}`, ` [ ] `, `"\\"`, `12`, `[[],[{}],"a:b"]`} {
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(raw), "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := indentedLines([]byte(raw)); !slices.Equal(got, strings.Split(strings.TrimSpace(want.String()), "\n")) {
			t.Errorf("%s has the lines %q", raw, got)
		}
	}
	if got := indentedLines(nil); got != nil {
		t.Errorf("nothing has the lines %q", got)
	}
	deep := strings.Repeat("[", 900) + strings.TrimSuffix(strings.Repeat("1,", 1<<18), ",") + strings.Repeat("]", 900)
	lines, size := indentedLines([]byte(deep)), 0
	for _, line := range lines {
		size += len(line)
	}
	if len(lines) != maxDiffLines || size > maxDiffLines*(2*maxIndent+2) {
		t.Errorf("a deep text of %d bytes has %d lines of %d bytes in all", len(deep), len(lines), size)
	}
	if got := indentedLines([]byte(`{"a":"` + strings.Repeat("x", 10))); len(got) != 2 {
		t.Errorf("a text that was cut has the lines %q", got)
	}
}
