package files

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestUnified(t *testing.T) {
	for _, test := range []struct{ old, new, want string }{
		{"a\n", "a\n", ""},
		{"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		{"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"a\nb\nc\nd\ne\n", "a\nb\nX\nd\ne\n", "@@ -1,5 +1,5 @@\n a\n b\n-c\n+X\n d\n e\n"},
		{"a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n4.5\n5\n6\n7\n8\n9\n", "@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+4.5\n 5\n 6\n 7\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n2\n3\n4\n5\n6\n7\n8\n0\n", "@@ -1,4 +1,4 @@\n-1\n+0\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+0\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n", "0\n2\n3\n4\n5\n6\n7\n0\n", "@@ -1,8 +1,8 @@\n-1\n+0\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+0\n"},
	} {
		want := test.want
		if want != "" {
			want = "--- a/dir/x\n+++ b/dir/x\n" + want
		}
		if got := diffOf(test.old, test.new).writeUnified("dir/x"); got != want {
			t.Errorf("%q to %q:\n%swant\n%s", test.old, test.new, got, want)
		}
	}
	if got := diffOf("a\n", "b\n").writeUnified("new\nline"); !strings.HasPrefix(got, "--- a/new\\nline\n+++ b/new\\nline\n@@") {
		t.Errorf("an odd name: %q", got)
	}
}

// randomText has few kinds of lines, so that there is much to get wrong.
func randomText(r *rand.Rand, lines int) string {
	var b strings.Builder
	for range r.IntN(lines + 1) {
		b.WriteString(strings.Repeat(string(rune('a'+r.IntN(4))), r.IntN(2)) + "\n")
	}
	text := b.String()
	if r.IntN(3) == 0 {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
}

// A diff from one text to another says exactly how to get there: its changes put the other text
// together.
func TestDiffsOfRandomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		old, new := randomText(r, 12), randomText(r, 12)
		d := diffOf(old, new)
		var b strings.Builder
		at := 0
		for _, c := range d.changes {
			b.WriteString(strings.Join(d.old[at:c.Old], "") + strings.Join(d.new[c.New:c.NewEnd], ""))
			at = c.OldEnd
		}
		b.WriteString(strings.Join(d.old[at:], ""))
		if b.String() != new {
			t.Fatalf("%q to %q: %+v makes %q", old, new, d.changes, b.String())
		}
		patched, _, err := parseDocument([]byte(old)).applyPatch(d.writeUnified("x"))
		if new == old {
			continue
		}
		if err != nil || patched != new {
			t.Fatalf("%q to %q:\n%smakes %q, %v", old, new, d.writeUnified("x"), patched, err)
		}
	}
}

// The diff of entirely different texts takes bounded time.
func TestDiffOfDifferentTexts(t *testing.T) {
	d := diffOf(strings.Repeat("a\nb\n", 20_000), strings.Repeat("c\nd\n", 20_000))
	if len(d.changes) != 1 || d.added != 40_000 || d.removed != 40_000 {
		t.Errorf("%d changes, +%d -%d", len(d.changes), d.added, d.removed)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
	f.Add("a\r\nb", "--- a\n+++ b\n@@ -9 +9 @@\n b\n\\ No newline at end of file\n+c\n")
	f.Fuzz(func(t *testing.T, before, diff string) {
		doc := parseDocument([]byte(before))
		if got := string(doc.encodeText(doc.text)); doc.ends == "" && got != before {
			t.Fatalf("%q became %q unchanged", before, got)
		}
		changed, n, err := doc.applyPatch(diff)
		if err == nil && n == 0 || err != nil && changed != "" {
			t.Errorf("%d hunks, %q, %v", n, changed, err)
		}
	})
}
