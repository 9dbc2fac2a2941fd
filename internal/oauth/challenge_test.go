package oauth

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestParseChallenges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		fields []string
		want   []Challenge
	}{
		{"none", nil, nil},
		{"empty", []string{"", " , "}, nil},
		{"scheme alone", []string{"Bearer"}, []Challenge{{Scheme: "Bearer"}}},
		{"quoted", []string{`Bearer resource_metadata="https://a/.well-known/x?y=1,2", scope="a b"`}, []Challenge{
			{"Bearer", []Param{{"resource_metadata", "https://a/.well-known/x?y=1,2"}, {"scope", "a b"}}},
		}},
		{"tokens", []string{`bearer error=invalid_token,scope=read`}, []Challenge{{"bearer", []Param{{"error", "invalid_token"}, {"scope", "read"}}}}},
		{"URL without quotes", []string{`Bearer resource_metadata=https://a/b?c=d, scope=x`}, []Challenge{
			{"Bearer", []Param{{"resource_metadata", "https://a/b?c=d"}, {"scope", "x"}}},
		}},
		{"escapes", []string{`Bearer error_description="say \"hi\" \\ bye"`}, []Challenge{{"Bearer", []Param{{"error_description", `say "hi" \ bye`}}}}},
		{"two in one field", []string{`Basic realm="x", Bearer scope="a", error="invalid_token"`}, []Challenge{
			{"Basic", []Param{{"realm", "x"}}}, {"Bearer", []Param{{"scope", "a"}, {"error", "invalid_token"}}},
		}},
		{"two fields", []string{`DPoP algs="ES256"`, `Bearer scope=a`}, []Challenge{
			{"DPoP", []Param{{"algs", "ES256"}}}, {"Bearer", []Param{{"scope", "a"}}},
		}},
		{"two schemes without parameters", []string{`Negotiate, Basic realm=x`}, []Challenge{{Scheme: "Negotiate"}, {"Basic", []Param{{"realm", "x"}}}}},
		{"base64 credentials", []string{`Negotiate YWJj==, Bearer scope=a`}, []Challenge{{Scheme: "Negotiate"}, {Scheme: "YWJj"}, {"Bearer", []Param{{"scope", "a"}}}}},
		{"spaces around =", []string{`Bearer scope = "a" , error = x`}, []Challenge{{"Bearer", []Param{{"scope", "a"}, {"error", "x"}}}}},
		{"quote not closed", []string{`Bearer scope="a b`}, []Challenge{{"Bearer", []Param{{"scope", "a b"}}}}},
		{"no comma", []string{`Bearer realm="a" scope="b"`}, []Challenge{{"Bearer", []Param{{"realm", "a"}, {"scope", "b"}}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := ParseChallenges(http.Header{"Www-Authenticate": tt.fields}); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFindChallenge(t *testing.T) {
	t.Parallel()
	all := ParseChallenges(http.Header{"Www-Authenticate": {`Basic scope="no", Bearer realm="x", DPOP scope="yes"`}})
	if c, ok := FindChallenge(all, "scope", "Bearer", "DPoP"); !ok || c.Get("Scope") != "yes" {
		t.Errorf("with scope: %v %v", c, ok)
	}
	if c, ok := FindChallenge(all, "error", "Bearer", "DPoP"); !ok || !c.Is("bearer") {
		t.Errorf("without the parameter: %v %v", c, ok)
	}
	if c, ok := FindChallenge(all, "scope", "Digest"); ok {
		t.Errorf("no such scheme: %v", c)
	}
}

func TestChallengeStringIsReadBack(t *testing.T) {
	t.Parallel()
	c := Challenge{"Bearer", []Param{{"scope", "a b"}, {"error_description", `it is "over" \o/`}}}
	got := ParseChallenges(http.Header{"Www-Authenticate": {c.String()}})
	if !reflect.DeepEqual(got, []Challenge{c}) {
		t.Errorf("%s was read as %q", c, got)
	}
	if s := (Challenge{"Bearer", []Param{{"x", "a\r\nSet-Cookie: b"}}}).String(); strings.ContainsAny(s, "\r\n") {
		t.Errorf("%q contains a line break", s)
	}
}

func FuzzParseChallenges(f *testing.F) {
	for _, seed := range []string{`Bearer a="b", c=d`, `Negotiate YWJj==, Basic`, `="`, `Bearer a="\`, "Bearer \x80=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		if n := len(ParseChallenges(http.Header{"Www-Authenticate": {field}})); n > maxChallenges {
			t.Errorf("%d challenges", n)
		}
	})
}
