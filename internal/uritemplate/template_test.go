package uritemplate

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

func mustParse(t testing.TB, text string) *Template {
	t.Helper()
	template, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

func mustExpand(t testing.TB, template *Template, vars Values) string {
	t.Helper()
	uri, err := template.Expand(vars)
	if err != nil {
		t.Fatal(err)
	}
	return uri
}

func sameValues(a, b Values) bool {
	return maps.EqualFunc(a, b, func(v, w Value) bool {
		return v.kind == w.kind && v.text == w.text && slices.Equal(v.items, w.items)
	})
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		text   string
		offset int
		part   string
	}{
		{"{/id*", 0, "not closed"},
		{"ab{x", 2, "not closed"},
		{"/id*}", 4, "without an opening"},
		{"{}", 1, "name"},
		{"{+}", 2, "name"},
		{"{x,}", 3, "name"},
		{"{,x}", 1, "reserved by"},
		{"{/?id}", 2, "name"},
		{"{??hello}", 2, "name"},
		{"{!hello}", 1, "reserved by"},
		{"{=path}", 1, "reserved by"},
		{"{|var*}", 1, "reserved by"},
		{"{$var}", 1, "name"},
		{"{*keys?}", 1, "name"},
		{"{var:prefix}", 4, "prefix"},
		{"{var:0}", 4, "prefix"},
		{"{var:}", 4, "prefix"},
		{"{var:03}", 4, "prefix"},
		{"{var:10000}", 9, "after a variable"},
		{"{hello:2*}", 8, "after a variable"},
		{"{keys*:1}", 6, "after a variable"},
		{"{?empty=default,var}", 7, "after a variable"},
		{"{-prefix|/-/|var}", 1, "name"},
		{"{example:color?}", 8, "prefix"},
		{"/h{#hello+}", 9, "after a variable"},
		{"{~thing}", 1, "name"},
		{"{user-id}", 5, "after a variable"},
		{"{a b}", 2, "after a variable"},
		{"{x, y}", 3, "name"},
		{"{.a.}", 3, "dot"},
		{"{a..b}", 2, "dot"},
		{"{..a}", 2, "name"},
		{"{x%2}", 2, "after a variable"},
		{"{x%2}0", 2, "after a variable"},
		{"{{x}}", 1, "name"},
		{"a b", 1, "cannot stand"},
		{"a\"", 1, "cannot stand"},
		{"a\\b", 1, "cannot stand"},
		{"a\x00", 1, "cannot stand"},
		{"a\u0085", 1, "cannot stand"},
		{"a\xff", 1, "UTF-8"},
		{"100%", 3, "hex"},
		{"%4", 0, "hex"},
		{"%zz", 0, "hex"},
		{strings.Repeat("a", MaxTemplate+1), MaxTemplate, "longer"},
		{strings.Repeat("{x}", MaxVariables+1), 3*MaxVariables + 1, "more than"},
	}
	for _, test := range tests {
		_, err := Parse(test.text)
		var at *ParseError
		if !errors.As(err, &at) {
			t.Errorf("%.40q: %v, want a ParseError", test.text, err)
			continue
		}
		if at.Offset != test.offset || !strings.Contains(at.Problem, test.part) {
			t.Errorf("%.40q: %v, want %q at %d", test.text, at, test.part, test.offset)
		}
	}
}

func TestLimitsAreReached(t *testing.T) {
	mustParse(t, strings.Repeat("a", MaxTemplate))
	template := mustParse(t, strings.Repeat("{x}", MaxVariables))
	if _, ok := template.Match(strings.Repeat("a", MaxVariables)); !ok {
		t.Error("no match")
	}
	long := mustParse(t, "a{x}")
	if _, ok := long.Match(strings.Repeat("a", MaxURI)); !ok {
		t.Error("the longest URI does not match")
	}
	if _, ok := long.Match(strings.Repeat("a", MaxURI+1)); ok {
		t.Error("a URI that is too long matches")
	}
}

func TestNamesAndLiteral(t *testing.T) {
	tests := []struct{ text, names, literal string }{
		{"a://b/{x}{?y,x,z.q*}{#Some%20Thing:3}", "x y z.q Some%20Thing", "-"},
		{"config://app", "", "config://app"},
		{"a://ü/'x'/%c3%bc", "", "a://%C3%BC/'x'/%c3%bc"},
		{"", "", ""},
	}
	for _, test := range tests {
		template := mustParse(t, test.text)
		if got := strings.Join(template.Names(), " "); got != test.names {
			t.Errorf("%q: names %q, want %q", test.text, got, test.names)
		}
		literal, ok := template.Literal()
		if !ok {
			literal = "-"
		}
		if literal != test.literal {
			t.Errorf("%q: literal %q, want %q", test.text, literal, test.literal)
		}
		if template.String() != test.text {
			t.Errorf("%q: String gives %q", test.text, template)
		}
	}
}

func TestExpand(t *testing.T) {
	vars := Values{
		"id":             Text("admin%2F"),
		"word":           Text("drücken"),
		"fields":         List("id", "name", "picture"),
		"odd":            List("red%25", "%2Fgreen", "blue "),
		"Stra%C3%9Fe":    Text("Grüner Weg"),
		"last.name":      Text("Doe"),
		"42":             Text("a"),
		"not_pct":        Text("%foo"),
		"gaps":           List("", "b"),
		"pairs":          Pairs(Pair{"ö ", ""}, Pair{"b", "ü"}),
		"empty_list":     List(),
		"zero":           {},
		"bytes":          Text("\xff\x00"),
		"three":          Text("äöü"),
		"list_of_empty":  List(""),
		"empty_and_more": Text(""),
	}
	tests := []struct{ text, want string }{
		{"{+id}", "admin%2F"},
		{"{#id}", "#admin%2F"},
		{"{id}", "admin%252F"},
		{"{+not_pct}", "%25foo"},
		{"{+odd}", "red%25,%2Fgreen,blue%20"},
		{"{odd}", "red%2525,%252Fgreen,blue%20"},
		{"/ü{?word}", "/%C3%BC?word=dr%C3%BCcken"},
		{"{?Stra%C3%9Fe}", "?Stra%C3%9Fe=Gr%C3%BCner%20Weg"},
		{"{/last.name,42}", "/Doe/a"},
		{"{three:2}", "%C3%A4%C3%B6"},
		{"{?fields,42}", "?fields=id,name,picture&42=a"},
		{"{;gaps*}", ";gaps;gaps=b"},
		{"{?gaps*}", "?gaps=&gaps=b"},
		{"{/gaps*}", "//b"},
		{"{;pairs*}", ";%C3%B6%20;b=%C3%BC"},
		{"{?pairs*}", "?%C3%B6%20=&b=%C3%BC"},
		{"{?pairs}", "?pairs=%C3%B6%20,,b,%C3%BC"},
		{"{?list_of_empty}", "?list_of_empty="},
		{"a{/empty_list*}{?zero,missing}", "a"},
		{"{bytes}", "%FF%00"},
	}
	for _, test := range tests {
		if got := mustExpand(t, mustParse(t, test.text), vars); got != test.want {
			t.Errorf("%s gives %q, want %q", test.text, got, test.want)
		}
	}
	for _, text := range []string{"{fields:1}", "{+pairs:1}"} {
		if uri, err := mustParse(t, text).Expand(vars); err == nil {
			t.Errorf("%s gives %q, want an error", text, uri)
		}
	}
}

func TestCompare(t *testing.T) {
	want := []string{
		"a://docs/readme/raw",
		"a://docs/readme",
		"a://docs/{id}",
		"a://docs/{id}{?rev}",
		"a://docs/{+path}",
		"a://{kind}/{id}",
		"a://{x}/{id}",
		"a://{kind}",
		"a://{+rest}",
		"a://{/rest*}",
		"{+all}",
	}
	for seed := range want {
		var templates []*Template
		for i := range want {
			templates = append(templates, mustParse(t, want[(i*3+seed)%len(want)]))
		}
		slices.SortFunc(templates, Compare)
		var got []string
		for _, template := range templates {
			got = append(got, template.String())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("order %q\nwant  %q", got, want)
		}
	}
	if Compare(mustParse(t, "{a}"), mustParse(t, "{a}")) != 0 {
		t.Error("a template differs from itself")
	}
}

func TestValue(t *testing.T) {
	list, pairs := List("a", "b"), Pairs(Pair{"k", "v"})
	if got := list.String() + " " + pairs.String() + " " + Text("x").String() + Value.String(Value{}); got != "a,b k,v x" {
		t.Errorf("strings: %q", got)
	}
	if !slices.Equal(list.Items(), []string{"a", "b"}) || !slices.Equal(Text("x").Items(), []string{"x"}) || pairs.Items() != nil {
		t.Error("items")
	}
	if !slices.Equal(pairs.Pairs(), []Pair{{"k", "v"}}) || list.Pairs() != nil {
		t.Error("pairs")
	}
	if !Text("").Defined() || List().Defined() || Pairs().Defined() || (Value{}).Defined() {
		t.Error("defined")
	}
}

func TestSafePath(t *testing.T) {
	for _, path := range []string{"a", "a/b.txt", "..a/b..", "a/.../b", "a/./b", "ä", "a:b"} {
		if path == "a:b" { // a drive, to Windows
			if SafePath(path) == nil {
				t.Errorf("%q is safe", path)
			}
		} else if err := SafePath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{"", "/a", "\\a", "C:\\a", "..", "../a", "a/../b", "a\\..\\b", "a/..", "a\x00b"} {
		if SafePath(path) == nil {
			t.Errorf("%q is safe", path)
		}
	}
}
