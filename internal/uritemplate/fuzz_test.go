package uritemplate

import (
	"regexp"
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, examples := range rfcExamples {
		for _, example := range examples {
			f.Add(example[0])
		}
	}
	for _, text := range []string{"{", "{}", "{x", "{x:", "{x:1", "{x:1}", "%", "ü", "{a%2", "{.a.", "{?a,b*}{&c}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		template, err := Parse(text)
		if err != nil {
			if at, ok := err.(*ParseError); !ok || at.Offset < 0 || at.Offset > len(text) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		vars := Values{}
		for _, name := range template.Names() {
			vars[name] = Text("a/ü")
		}
		uri := mustExpand(t, template, vars)
		once := plainExpressions(text) == len(vars) // else the parts have to agree
		if _, ok := template.Match(uri); !ok && once && len(uri) <= MaxURI {
			t.Fatalf("%q does not match its own %q", text, uri)
		}
	})
}

func FuzzMatch(f *testing.F) {
	for _, examples := range rfcExamples {
		for _, example := range examples {
			f.Add(example[0], example[1])
		}
	}
	f.Add("w://{city}/{day}", "w://%C3%BC/a%2fb")
	f.Add("{a}-{b}", "x-y-z")
	f.Fuzz(func(t *testing.T, text, uri string) {
		template, err := Parse(text)
		if err != nil {
			return
		}
		vars, ok := template.Match(uri)
		if !ok {
			return
		}
		if len(template.Names()) == 0 && len(vars) > 0 {
			t.Fatalf("%q has no variables, yet matches %v", text, vars)
		}
		if expressions := plainExpressions(text); expressions > 0 {
			checkReturn(t, template, uri, vars, expressions)
		}
	})
}

// checkReturn: the variables of plain expressions give the URI back, as far as
// it was encoded no more and no less than it has to be, and otherwise one that
// says the same.
func checkReturn(t *testing.T, template *Template, uri string, vars Values, expressions int) {
	back := mustExpand(t, template, vars)
	before, _ := percentDecode(uri)
	after, ok := percentDecode(back)
	if !ok || before != after {
		t.Fatalf("%q: %q comes back as %q", template, uri, back)
	}
	if isNormal(uri, vars) && !strings.EqualFold(back, uri) {
		t.Fatalf("%q: %q comes back as %q, but was normal", template, uri, back)
	}
	if again, ok := template.Match(back); expressions == 1 && len(back) <= MaxURI && (!ok || !sameValues(vars, again)) {
		t.Fatalf("%q: %q gives %v, and %q gives %v", template, uri, vars, back, again)
	}
}

var expressionsIn = regexp.MustCompile(`{[^}]*}`)

// plainExpressions counts the expressions if all are of one simple variable.
func plainExpressions(text string) int {
	found := expressionsIn.FindAllString(text, -1)
	for _, e := range found {
		if strings.ContainsAny(e, "+#/;?&,:*") || e[1] == '.' {
			return 0
		}
	}
	return len(found)
}

// isNormal reports whether only characters that require it are percent-encoded.
func isNormal(uri string, vars Values) bool {
	for _, v := range vars {
		if strings.ContainsAny(v.text, ":/?#[]@!$&'()*+,;=%") {
			return false
		}
	}
	decoded, ok := percentDecode(uri)
	var b strings.Builder
	percentEncode(&b, decoded, true)
	return ok && strings.EqualFold(b.String(), uri)
}
