package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// notices shows what the packages below have to say: warnings, and everything with --verbose.
type notices struct {
	screen  *screen
	verbose bool
	json    bool
	attrs   []slog.Attr
}

func (a *app) notices() *notices {
	return &notices{screen: a.stderr, verbose: a.verbose, json: a.json}
}

// Enabled implements [slog.Handler].
func (n *notices) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || n.verbose
}

// Handle implements [slog.Handler].
func (n *notices) Handle(_ context.Context, r slog.Record) error {
	attrs := n.attrs
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs[:len(attrs):len(attrs)], a)
		return true
	})
	level := strings.ToLower(r.Level.String())
	var details strings.Builder
	for _, a := range attrs {
		fmt.Fprintf(&details, " %s=%s", a.Key, detail(a.Value.String()))
	}
	if r.Level >= slog.LevelWarn {
		level = "warning"
	}
	if n.json {
		encodeLine(n.screen, map[string]any{level: r.Message + details.String()})
		return nil
	}
	prefix := "dowel: " + level + ":"
	_, err := fmt.Fprintf(n.screen, "%s %s%s\n", n.screen.yellow(prefix), n.screen.clean(r.Message), n.screen.dim(details.String()))
	return err
}

func detail(text string) string {
	const most = 200
	text = shorten(line(text), most)
	if strings.ContainsAny(text, " =\"") || text == "" {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// WithAttrs implements [slog.Handler].
func (n *notices) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *n
	more.attrs = append(n.attrs[:len(n.attrs):len(n.attrs)], attrs...)
	return &more
}

// WithGroup implements [slog.Handler]; groups are not told apart.
func (n *notices) WithGroup(string) slog.Handler { return n }
