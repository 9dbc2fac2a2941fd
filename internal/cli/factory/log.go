package factory

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/dowel-mcp/dowel/internal/term"
)

// logHandler shows what the packages below have to say: warnings, and everything with --verbose.
type logHandler struct {
	screen  *term.Screen
	verbose bool
	json    bool
	attrs   []slog.Attr
}

func (f *Factory) LogHandler() *logHandler {
	return &logHandler{screen: f.Stderr, verbose: f.Verbose, json: f.JSON}
}

// Enabled implements [slog.Handler].
func (n *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || n.verbose
}

// Handle implements [slog.Handler].
func (n *logHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := n.attrs
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs[:len(attrs):len(attrs)], a)
		return true
	})
	level := strings.ToLower(r.Level.String())
	var details strings.Builder
	for _, a := range attrs {
		fmt.Fprintf(&details, " %s=%s", a.Key, quoteDetail(a.Value.String()))
	}
	if r.Level >= slog.LevelWarn {
		level = "warning"
	}
	if n.json {
		WriteJSONLine(n.screen, map[string]any{level: r.Message + details.String()})
		return nil
	}
	prefix := "dowel: " + level + ":"
	_, err := fmt.Fprintf(n.screen, "%s %s%s\n", n.screen.Yellow(prefix), n.screen.Clean(r.Message), n.screen.Dim(details.String()))
	return err
}

func quoteDetail(text string) string {
	const most = 200
	text = term.Shorten(term.Line(text), most)
	if strings.ContainsAny(text, " =\"") || text == "" {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// WithAttrs implements [slog.Handler].
func (n *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *n
	more.attrs = append(n.attrs[:len(n.attrs):len(n.attrs)], attrs...)
	return &more
}

// WithGroup implements [slog.Handler]; groups are not told apart.
func (n *logHandler) WithGroup(string) slog.Handler { return n }
