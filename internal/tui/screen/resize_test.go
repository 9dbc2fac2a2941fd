package screen

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// streamedReply is a reply with each kind of block. Each number occurs once in it, in ascending
// order.
func streamedReply() string {
	var text strings.Builder
	n := 0
	word := func() string {
		n++
		return fmt.Sprintf("w%03d", n)
	}
	for range 4 {
		fmt.Fprintf(&text, "## %s\n\n", word())
		for range 20 {
			fmt.Fprintf(&text, "%s ", word())
		}
		fmt.Fprintf(&text, "\n\n- %s\n- **%s** 漢字\n\n```go\n%s := 1\n%s()\n```\n\n| %s | %s |\n|---|---|\n| %s | %s |\n\n> %s\n\n",
			word(), word(), word(), word(), word(), word(), word(), word(), word())
	}
	return text.String()
}

var replyWord = regexp.MustCompile(`w\d{3}`)

// A terminal that changes its size while a reply streams shows each word that has come once, in its
// place, and at the end what it would show if it had had its last size from the beginning.
func TestResizeWhileReplyStreams(t *testing.T) {
	text := streamedReply()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		d := newDriver(t)
		d.send(Taken{"Write."})
		for rest := text; rest != ""; {
			n := min(1+random.IntN(40), len(rest))
			for n < len(rest) && rest[n]&0xc0 == 0x80 { // whole runes
				n++
			}
			d.send(Said{rest[:n]})
			rest = rest[n:]
			width := 16 + random.IntN(120)
			d.send(tea.WindowSizeMsg{Width: width, Height: 1 + random.IntN(40)})
			checkScreen(t, d.model, fmt.Sprintf("seed %d", seed))
			d.send(tea.WindowSizeMsg{Width: width, Height: 1000})
			come := replyWord.FindAllString(text[:len(text)-len(rest)], -1)
			if shown := shownWords(d.model); !slices.Equal(shown, come) {
				t.Fatalf("seed %d: %d columns show %v, want %v", seed, width, shown, come)
			}
		}
		d.send(Replied{}, RunEnded{})
		fresh := newDriver(t)
		fresh.send(Taken{"Write."}, Said{text}, Replied{}, RunEnded{})
		for _, size := range sizes {
			if got, want := d.rows(size[0], size[1]), fresh.rows(size[0], size[1]); !slices.Equal(got, want) {
				t.Errorf("seed %d: %v is\n%s\nwant\n%s", seed, size, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// shownWords returns the words of the reply on the screen.
func shownWords(m *Model) []string {
	return replyWord.FindAllString(ansi.Strip(m.View().Content), -1)
}
