package highlight

import (
	"strings"
	"testing"
)

// mark writes the kinds of words into code: k‹return›.
func mark(language, code string) string {
	letters := map[Kind]string{Comment: "c", Text: "t", Number: "n", Keyword: "k", Name: "f", Added: "+", Removed: "-"}
	s := New(language)
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		var b strings.Builder
		at := 0
		for _, span := range s.ScanLine(line) {
			if part := line[at:span.End]; span.Kind == Plain {
				b.WriteString(part)
			} else {
				b.WriteString(letters[span.Kind] + "‹" + part + "›")
			}
			at = span.End
		}
		lines[i] = b.String() + line[at:]
	}
	return strings.Join(lines, "\n")
}

func TestScanLine(t *testing.T) {
	for _, tt := range []struct{ language, code, want string }{
		{"go", "func f(a int) string { // x\n\treturn `a\nb` + \"\\\"\" + string('\\'') // 1", "k‹func› f‹f›(a int) string { c‹// x›\n\tk‹return› t‹`a›\nt‹b`› + t‹\"\\\"\"› + f‹string›(t‹'\\''›) c‹// 1›"},
		{"Go", "x := 0x1F + 1.5e3 + f1", "x := n‹0x1F› + n‹1.5e3› + f1"},
		{"rust", "let a: &'static str = \"x\ny\"; /* 1\n2 */ None", "k‹let› a: &'k‹static› str = t‹\"x›\nt‹y\"›; c‹/* 1›\nc‹2 */› n‹None›"},
		{"c", "#include <stdio.h>\nchar c = '\"'; // it's", "k‹#include› <stdio.h>\nk‹char› c = t‹'\"'›; c‹// it's›"},
		{"py", "def f(self): # c\n    \"\"\"doc\n    it's\"\"\"\n    return f\"{x}\" or None", "k‹def› f‹f›(n‹self›): c‹# c›\n    t‹\"\"\"doc›\nt‹    it's\"\"\"›\n    k‹return› ft‹\"{x}\"› k‹or› n‹None›"},
		{"js", "const a = `x ${y}\nz`; // '", "k‹const› a = t‹`x ${y}›\nt‹z`›; c‹// '›"},
		{"sh", "if [ $# -gt 0 ]; then # c\n  echo \"a # b\" 'c\n d' ${#x}", "k‹if› [ $# -gt n‹0› ]; k‹then› c‹# c›\n  k‹echo› t‹\"a # b\"› t‹'c›\nt‹ d'› ${#x}"},
		{"sql", "SELECT a, 'it''s' FROM t -- c\nWHERE b = 1", "k‹SELECT› a, t‹'it''s'› k‹FROM› t c‹-- c›\nk‹WHERE› b = n‹1›"},
		{"json", "{\"a\": \"b\", \"c\" : [1, true]}", "{f‹\"a\"›: t‹\"b\"›, f‹\"c\"› : [n‹1›, n‹true›]}"},
		{"yaml", "a-b: http://c # d\ne: true\nf#g: 'h'", "f‹a-b›: http://c c‹# d›\nf‹e›: n‹true›\nf#f‹g›: t‹'h'›"},
		{"toml", "[a]\nb = \"c\" # d\ne.f=1", "[a]\nf‹b› = t‹\"c\"› c‹# d›\nf‹e.f›=n‹1›"},
		{"toml", "a = \"\"\"b\n\"\"\" = 1", "f‹a› = t‹\"\"\"b›\nf‹\"\"\"› = n‹1›"},
		{"html", "<a b=\"c\n\"=d", "k‹<a› f‹b›=t‹\"c›\nf‹\"›=d"},
		{"html", "<!-- a\nb --><p class=\"c\" d>it's</p> <br/>x", "c‹<!-- a›\nc‹b -->›k‹<p› f‹class›=t‹\"c\"› dk‹>›it'sk‹</p>› k‹<br/>›x"},
		{"css", "@media x { a { color: #fff; } } /* c */", "k‹@media› x { a { f‹color›: #fff; } } c‹/* c */›"},
		{"lua", "--[[ a\nb ]] local x = nil -- c", "c‹--[[ a›\nc‹b ]]› k‹local› x = n‹nil› c‹-- c›"},
		{"docker", "FROM a AS b\n# c", "k‹FROM› a k‹AS› b\nc‹# c›"},
		{"powershell", "<# a\n#> IF ($TRUE) { \"C:\\\" }", "c‹<# a›\nc‹#>› k‹IF› (n‹$TRUE›) { t‹\"C:\\\"› }"},
		{"diff", "--- a\n@@ -1 +1 @@\n-x\n+y\n z", "-‹--- a›\nk‹@@ -1 +1 @@›\n-‹-x›\n+‹+y›\n z"},
		{"go", "\xff\xfe 日本(\"語", "\xff\xfe f‹日本›(t‹\"語›"},
		{"go", "\"open\nfunc", "t‹\"open›\nk‹func›"},
	} {
		if got := mark(tt.language, tt.code); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.language, got, tt.want)
		}
	}
	for _, unknown := range []string{"", "mermaid", "a go"} {
		if New(unknown) != nil {
			t.Errorf("%q is a known language", unknown)
		}
	}
}

// The spans of any line lie one behind the other and reach its end, in every language.
func FuzzScanLine(f *testing.F) {
	f.Add("go", "a := `x")
	f.Add("html", "<a b='c' <")
	f.Add("toml", "\"\"\"a\n\"\"\" = 1")
	f.Fuzz(func(t *testing.T, language, code string) {
		s := New(language)
		if s == nil {
			s = New("php")
		}
		for line := range strings.SplitSeq(code, "\n") {
			at := 0
			for _, span := range s.ScanLine(line) {
				if span.End <= at {
					t.Fatalf("a part of %q ends at %d, the one before at %d", line, span.End, at)
				}
				at = span.End
			}
			if at != len(line) {
				t.Fatalf("the parts of %q end at %d", line, at)
			}
		}
	})
}
