package shell

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func collect(half, size int, p string) (string, int) {
	o := output{half: half}
	for p != "" {
		n := min(size, len(p))
		o.addBytes([]byte(p[:n]))
		p = p[n:]
	}
	return o.takeNew()
}

func TestOutput(t *testing.T) {
	long := strings.Repeat("0123456789", 2000)
	for _, c := range []struct {
		half    int
		in      string
		want    string
		omitted int
	}{
		{5, "", "", 0},
		{5, "abcdefghij", "abcdefghij", 0},
		{5, "abcdefghijk", "abcde\n[… 1 characters omitted …]\nghijk", 1},
		{2, "äöüßñ€", "äö\n[… 2 characters omitted …]\nñ€", 2},
		{5, long, "01234\n[… 19990 characters omitted …]\n56789", 19990},
		{5000, long[:10000], long[:10000], 0},
		{9, "a\x00b", "a␀b", 0},
		{9, "a\xffb", "a\uFFFDb", 0},
		{9, "\xe2\x82", "\uFFFD", 0},
		{9, "x\xe2\x82\xacy", "x€y", 0},
		{9, "x\xf0\x9f\x8e", "x\uFFFD", 0},
		{0, "abc", "\n[… 3 characters omitted …]\n", 3},
	} {
		for _, size := range []int{1, 2, 3, 7, 1000, 1 << 20} {
			if got, omitted := collect(c.half, size, c.in); got != c.want || omitted != c.omitted {
				t.Errorf("%.50q, %d, in pieces of %d: got %.100q, %d, want %.100q, %d", c.in, c.half, size, got, omitted, c.want, c.omitted)
			}
		}
	}
}

func TestLatestOutput(t *testing.T) {
	o := output{half: 3}
	for i, want := range []string{"", "ä", "äb", "äbc", "bcd", "cde", "def"} {
		if i > 0 {
			o.addBytes([]byte([]string{"ä", "b", "c", "d", "e", "f"}[i-1]))
		}
		if got := o.latestText(3); got != want {
			t.Errorf("%d: got %q, want %q", i, got, want)
		}
	}
}

func FuzzOutput(f *testing.F) {
	f.Add("a\xe2\x82\xacb\xff\x00", 2, 1)
	f.Fuzz(func(t *testing.T, in string, half, size int) {
		half, size = min(max(half, 0), 1000), max(size, 1)
		got, omitted := collect(half, size, in)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("no text: %q", got)
		}
		all, _ := collect(len(in)+1, size, in)
		n := utf8.RuneCountInString(all)
		if want := max(n-2*half, 0); omitted != want {
			t.Errorf("%d of %d characters left out, want %d", omitted, n, want)
		}
		if omitted == 0 && got != all || utf8.ValidString(in) && !strings.ContainsRune(in, 0) && all != in {
			t.Errorf("got %q of %q", got, all)
		}
		if omitted > 0 && !strings.Contains(got, fmt.Sprintf("[… %d characters", omitted)) {
			t.Errorf("got %q", got)
		}
	})
}
