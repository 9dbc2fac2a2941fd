package agentcmd

import (
	"slices"
	"strings"
	"testing"
)

func TestFindMentions(t *testing.T) {
	for text, want := range map[string][]Mention{
		"":                              nil,
		"mail a@b.c":                    nil,
		"@a:b and @\"c d:e f\", (@g:h)": {{Word: "a:b"}, {Quoted: "c d:e f"}},
		"@a @b:c\n@d":                   {{Word: "a"}, {Word: "b:c"}, {Word: "d"}},
	} {
		if got := FindMentions(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
	for word, want := range map[string]bool{"a:b": true, "a:": false, ":b": false, "a": false, "a:b:c": true} {
		if got := (Mention{Word: word}).MayBeResource(); got != want {
			t.Errorf("%s: %v", word, got)
		}
	}
}

func TestTrimPunctuation(t *testing.T) {
	for uri, want := range map[string]string{
		"x://a":         "x://a",
		"x://a.":        "x://a",
		"x://a),":       "x://a",
		"x://a(b)":      "x://a(b)",
		"x://a(b)).":    "x://a(b)",
		"x://{id}":      "x://{id}",
		"x://a?b=[1]'!": "x://a?b=[1]",
		"...":           "",
	} {
		if got := trimPunctuation(uri); got != want {
			t.Errorf("%s: got %s, want %s", uri, got, want)
		}
	}
}

// A name before a colon that no server has is a mistake only before a URL.
func TestUnknownServer(t *testing.T) {
	servers := []Server{{Name: "everything"}, {Name: "files"}}
	for word, want := range map[string]string{
		"evrything:x://y":   "no server is called evrything; did you mean everything?",
		"zzz:x://y":         "; there are everything, files",
		"alice:matrix.org":  "",
		"todo:later":        "",
		"https://a.b":       "",
		"e\x1b[2J:x://\x1b": "no server is called e",
	} {
		err := unknownServer(word, servers)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b")) {
			t.Errorf("%q: got %v, want %q", word, err, want)
		}
	}
}
