package wirename

import "testing"

func TestSplit(t *testing.T) {
	for _, c := range []struct{ server, thing string }{
		{"a", "set"}, {"a", "_set"}, {"a", "b__set"}, {"a__b", "set"}, {"my.server", "set"}, {"my server", "set"}, {"github__x", "y"},
		{"a", "report_20240101"}, {"a", "files.read"}, {"a", "b__set_23f033f7"},
	} {
		name := Of(c.server, c.thing)
		s, thing, ok := Split(name, nil, nil)
		if ok == Marked(name) || ok && (s != c.server || thing != c.thing) {
			t.Errorf("%s is %q of %q by itself, %v", name, thing, s, ok)
		}
		if s, thing, ok = Split(name, c.server, c.thing); !ok || s != c.server || thing != c.thing {
			t.Errorf("%s is %q of %q, %v", name, thing, s, ok)
		}
		if _, _, ok = Split(name, "another", c.thing); ok {
			t.Errorf("%s is taken for another's", name)
		}
	}
	if a, b := Of("a__b", "set"), Of("a", "b__set_23f033f7"); a == b {
		t.Errorf("both are %s", a)
	}
	if _, _, ok := Split("plain", nil, nil); ok {
		t.Error("a name without a server has one")
	}
}

func TestResourceURI(t *testing.T) {
	for server, want := range map[string]string{"a": "dowel://a/x://y", "my server": "dowel://my_server" + Digest("my server") + "/x://y"} {
		got := ResourceURI(server, "x://y")
		host, uri, ok := SplitResourceURI(got)
		if got != want || !ok || host != Host(server) || uri != "x://y" {
			t.Errorf("%s: got %s, of %q at %q, %v", server, got, uri, host, ok)
		}
	}
	for _, other := range []string{"x://y", "dowel://a", "dowel:///x"} {
		if _, _, ok := SplitResourceURI(other); ok {
			t.Errorf("%s names a server", other)
		}
	}
}

// A fitted name is part of the names on the wire, which need no digest then.
func TestFit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"github": "github", "GitHub": "GitHub", "a_b": "a_b", "My Server": "my-server", "my.server": "my-server", "a__b": "a-b", "x_": "x",
		"dowel": "dowel-server", "Dowel!": "dowel-server", "": "server", "日本": "server", "  @scope/name  ": "scope-name", "--": "--", "é-": "server",
	} {
		got := Fit(name)
		if got != want || Marked(Of(got, "tool")) || Fit(got) != got {
			t.Errorf("%q became %q (%s), want %q", name, got, Of(got, "tool"), want)
		}
	}
}
