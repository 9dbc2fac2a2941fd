package edit_test

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config/edit"
)

// Syntax errors are explained for users, not in the terms of the parser.
func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		format edit.Format
		text   string
		want   string
	}{
		{edit.JSON, `{"a": {`, "the file ends too early, a quote or a bracket is not closed"},
		{edit.JSON, `{"a": 1 "b": 2}`, "line 1, column 9: a comma is missing here, or a bracket"},
		{edit.JSON, `{a: 1}`, "line 1, column 2: a is not JSON: write keys and text in double quotes"},
		{edit.JSON, `{"a" 1}`, "line 1, column 6: a colon belongs behind the key, not '1'"},
		{edit.JSON, `{"a": ,}`, "line 1, column 7: a value belongs here, not ','"},
		{edit.JSON, `{"a": maybe}`, "maybe is not JSON"},
		{edit.JSON, `{"a": 'b'}`, `JSON has no single quotes, write "…"`},
		{edit.JSON, "{\"a\": \"b\n\"}", "this string is not closed in its line"},
		{edit.JSON, `{} {`, "the file continues after its last bracket"},
		{edit.JSON, `{} /*`, "within a comment"},
		{edit.TOML, "a = = 1\n", "line 1, column 5: "},
		{edit.TOML, "a = @\n", "'@'"},
	} {
		_, err := edit.Set([]byte(c.text), c.format, []string{"x"}, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.text, err, c.want)
			continue
		}
		for _, leak := range []string{"hujson", "toml:", "parsing ", "EOF", "U+"} {
			if strings.Contains(err.Error(), leak) {
				t.Errorf("%s: %q is in %v", c.text, leak, err)
			}
		}
	}
}
