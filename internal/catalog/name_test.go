package catalog

import (
	"regexp"
	"strings"
	"testing"
)

func TestWireName(t *testing.T) {
	form := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	for _, c := range []struct{ server, thing, want string }{
		{"github", "create_issue", "github__create_issue"},
		{"git-hub", "create-issue", "git-hub__create-issue"},
		{"a", "_b", "a___b"},
		{"a_", "b", "a___b_"},
		{"a__b", "c", "a__b__c_"},
		{"a", "b__c", "a__b__c"},
		{"my server", "do it", "my_server__do_it_"},
		{"s", "files.read", "s__files_read_"},
		{"s", strings.Repeat("x", 61), "s__" + strings.Repeat("x", 61)},
		{"s", strings.Repeat("x", 62), "s__" + strings.Repeat("x", 52) + "_"},
		{"日本", "語", "_____"},
		{"", "", "____"},
	} {
		got := wireName(c.server, c.thing)
		if !form.MatchString(got) || !strings.HasPrefix(got, c.want) || !strings.HasSuffix(c.want, "_") && got != c.want {
			t.Errorf("%s %s is %s, want %s", c.server, c.thing, got, c.want)
		}
		if got != wireName(c.server, c.thing) {
			t.Errorf("%s %s has two names", c.server, c.thing)
		}
	}
}

// Different items have different names on the wire.
func TestWireNamesDiffer(t *testing.T) {
	parts := []string{"a", "b", "_", "__", "a_", "_a", "a__b", "a__", "a.b", "a-b", "a b", strings.Repeat("a", 70), strings.Repeat("a", 71), "é", "è"}
	seen := map[string][2]string{}
	for _, s := range parts {
		for _, n := range parts {
			w := wireName(s, n)
			if other, taken := seen[w]; taken {
				t.Errorf("%q and %q are both %s", other, [2]string{s, n}, w)
			}
			seen[w] = [2]string{s, n}
		}
	}
}
