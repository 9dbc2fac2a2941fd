package factory

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
)

// logHandler writes log records to stderr: warnings and errors, or everything with --verbose. It
// labels errors as warnings.
type logHandler struct {
	screen  *term.Screen
	verbose bool
	json    bool
	attrs   []slog.Attr
}

// LogHandler returns a [slog.Handler] that writes to stderr. It uses the flags at the time of the
// call.
func (f *Factory) LogHandler() *logHandler {
	return &logHandler{screen: f.Stderr, verbose: f.IsVerbose(), json: f.JSON}
}

// Enabled implements [slog.Handler].
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.verbose
}

// Handle implements [slog.Handler].
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := h.attrs
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs[:len(attrs):len(attrs)], a)
		return true
	})
	level := strings.ToLower(r.Level.String())
	message := secretmask.Text(r.Message)
	var details strings.Builder
	for _, a := range attrs {
		fmt.Fprintf(&details, " %s=%s", a.Key, quoteDetail(secretmask.Text(a.Value.String())))
	}
	if r.Level >= slog.LevelWarn {
		level = "warning"
	}
	if h.json {
		WriteJSONLine(h.screen, map[string]any{level: message + details.String()})
		return nil
	}
	prefix := "dowel: " + level + ":"
	text := h.screen.Yellow(prefix) + " " + h.screen.Clean(message) + h.screen.Dim(details.String())
	_, err := fmt.Fprintln(h.screen, h.screen.Wrapped(text))
	return err
}

// quoteDetail returns text as one line of at most 200 characters, quoted if necessary.
func quoteDetail(text string) string {
	const most = 200
	text = term.Shorten(term.Line(text), most)
	if strings.ContainsAny(text, " =\"") || text == "" {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// WithAttrs implements [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	more.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)
	return &more
}

// WithGroup implements [slog.Handler]. It ignores groups.
func (h *logHandler) WithGroup(string) slog.Handler { return h }
