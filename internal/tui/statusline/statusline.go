// Package statusline is the last line of the screen: what the program does, the model, the servers,
// and how much of the model's context is used.
package statusline

import (
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// Status is the content of the line. Its texts may be foreign.
type Status struct {
	Activity string        // what the program does; "" means nothing
	Elapsed  time.Duration // for which Activity lasts, in whole seconds
	Hint     string        // shown without an activity

	Model   string
	Servers Servers
	Used    int    // tokens of the context
	Window  int    // size of the context in tokens; 0 means unknown
	Cost    string // of the conversation so far, such as $0.12; "" means unknown
}

// Servers counts servers by their state.
type Servers struct{ Ready, Starting, NeedLogin, Failed int }

// Line returns the line, exactly width columns wide or less.
func (s *Status) Line(width int, t *theme.Theme) string {
	right := s.renderRight(t)
	left := t.Dim.Render(clean(s.Hint))
	if s.Activity != "" {
		text := "● " + clean(s.Activity)
		if s.Elapsed > 0 {
			text += " " + s.Elapsed.String()
		}
		left = t.Accent.Render(text)
	}
	right = theme.Cut(right, width)
	left = theme.Cut(left, max(width-theme.Width(right)-2, 0))
	return left + strings.Repeat(" ", max(width-theme.Width(left)-theme.Width(right), 0)) + right
}

// renderRight returns the right part of the line.
func (s *Status) renderRight(t *theme.Theme) string {
	var parts []string
	if servers := s.Servers.renderCounts(t); servers != "" {
		parts = append(parts, servers)
	}
	if s.Model != "" {
		parts = append(parts, theme.Cut(clean(s.Model), 28))
	}
	switch {
	case s.Window > 0 && s.Used > 0:
		percent := 100 * float64(s.Used) / float64(s.Window)
		style := t.Dim
		if percent > 75 {
			style = t.Warn
		}
		parts = append(parts, style.Render(fmt.Sprintf("%.0f%% of %s", percent, thousands(s.Window))))
	case s.Used > 0:
		parts = append(parts, t.Dim.Render(thousands(s.Used)+" tokens"))
	}
	if s.Cost != "" {
		parts = append(parts, t.Dim.Render(clean(s.Cost)))
	}
	return strings.Join(parts, t.Dim.Render(" · "))
}

func (s Servers) renderCounts(t *theme.Theme) string {
	var parts []string
	for _, one := range []struct {
		n     int
		words string
		style func(...string) string
	}{
		{s.Ready, "ready", t.Good.Render}, {s.Starting, "starting", t.Accent.Render},
		{s.NeedLogin, "need login", t.Warn.Render}, {s.Failed, "failed", t.Bad.Render},
	} {
		if one.n > 0 {
			parts = append(parts, one.style(fmt.Sprintf("%d %s", one.n, one.words)))
		}
	}
	return strings.Join(parts, " ")
}

// thousands returns a count of tokens in brief, such as 128k.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%dk", (n+500)/1000)
}

func clean(text string) string { return strings.Join(strings.Fields(theme.Clean(text)), " ") }
