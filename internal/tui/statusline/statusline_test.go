package statusline

import (
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

func TestLine(t *testing.T) {
	full := Status{Activity: "thinking", Elapsed: 3 * time.Second, Model: "gpt-test", Servers: Servers{Ready: 2, Starting: 1, NeedLogin: 1, Failed: 1}, Used: 32_000, Window: 128_000}
	for _, tt := range []struct {
		status Status
		width  int
		want   string
	}{
		{Status{Hint: "/help"}, 10, "/help     "},
		{full, 90, "● thinking 3s            2 ready 1 starting 1 need login 1 failed · gpt-test · 25% of 128k"},
		{full, 40, "2 ready 1 starting 1 need login 1 faile…"},
		{Status{Model: "m", Used: 900}, 20, "      m · 900 tokens"},
		{Status{Model: "m", Used: 900, Cost: "$0.12"}, 24, "  m · 900 tokens · $0.12"},
		{Status{Model: "a\x1b[31m\nb"}, 10, "       a b"},
	} {
		got := ansi.Strip(tt.status.Line(tt.width, theme.New(true)))
		if got != tt.want {
			t.Errorf("%d columns: got\n%q\nwant\n%q", tt.width, got, tt.want)
		}
	}
}
