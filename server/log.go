package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"golang.org/x/time/rate"
)

// loggerKey is the attribute, outside of groups, that names the logger of a message.
const loggerKey = "logger"

// A request may send messageBurst log messages at once and as many per second. Further messages are
// dropped and counted, and the count is the request's last message.
const (
	messageBurst  = 100
	messagesEvery = time.Second / messageBurst
)

// Log returns a logger that sends messages to the client of the handler's request. The client gets
// messages at or above the log level of its request, and none if the request has no log level.
// Outside a handler the logger discards everything. A message without attributes is sent as a
// string; a message with attributes is sent as an object with the member message. The attribute
// "logger", outside of groups, names the logger. Never log secrets, personal data or internals
// here.
//
// The protocol has more levels than package slog: notice is slog.Level(2), critical 12, alert 16
// and emergency 20.
func Log(ctx context.Context) *slog.Logger {
	c := callFrom(ctx)
	if c == nil || !c.wantsLogs() {
		return slog.New(slog.DiscardHandler)
	}
	h := newLogHandler()
	h.call = c
	return slog.New(h)
}

// NewLogHandler returns a handler for loggers that requests share. Each message goes to the client
// of the request in whose context it is logged, as [Log] describes.
func NewLogHandler() slog.Handler { return newLogHandler() }

// logHandler encodes a record's attributes with slog's own JSON handler.
type logHandler struct {
	call    *call // nil means the call of the context
	name    string
	grouped bool
	attrs   bool // WithAttrs has added attributes
	wrap    func(slog.Handler) slog.Handler
}

func newLogHandler() *logHandler {
	return &logHandler{wrap: func(h slog.Handler) slog.Handler { return h }}
}

func (h *logHandler) callOf(ctx context.Context) *call {
	if h.call != nil {
		return h.call
	}
	return callFrom(ctx)
}

// Enabled implements [slog.Handler].
func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	c := h.callOf(ctx)
	return c != nil && c.wantsLogs() && loggingLevel(level).Severity() >= c.req.LogLevel.Severity()
}

// wantsLogs reports whether the client wants any messages.
func (c *call) wantsLogs() bool { return c.req.LogLevel != "" && !c.server.opts.NoLogging }

// WithAttrs implements [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	var rest []slog.Attr
	for _, a := range attrs {
		if !h.grouped && a.Key == loggerKey {
			with.name = a.Value.String()
		} else {
			rest = append(rest, a)
		}
	}
	if len(rest) > 0 {
		with.attrs = true
		with.wrap = func(inner slog.Handler) slog.Handler { return h.wrap(inner).WithAttrs(rest) }
	}
	return &with
}

// WithGroup implements [slog.Handler].
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	with := *h
	with.grouped = true
	with.wrap = func(inner slog.Handler) slog.Handler { return h.wrap(inner).WithGroup(name) }
	return &with
}

// Handle implements [slog.Handler].
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	c := h.callOf(ctx)
	if c == nil || !h.Enabled(ctx, r.Level) {
		return nil
	}
	name, bare := h.name, slog.NewRecord(time.Time{}, r.Level, r.Message, 0)
	r.Attrs(func(a slog.Attr) bool {
		if !h.grouped && a.Key == loggerKey {
			name = a.Value.String()
		} else {
			bare.AddAttrs(a)
		}
		return true
	})
	data, err := h.encodeData(ctx, bare)
	if err != nil {
		return err
	}
	params, err := mcp.Encode(&mcp.LoggingMessageParams{Level: loggingLevel(r.Level), Logger: name, Data: data})
	if err == nil {
		c.sendMessage(params)
	}
	return err
}

func (h *logHandler) encodeData(ctx context.Context, r slog.Record) (json.RawMessage, error) {
	if !h.attrs && r.NumAttrs() == 0 {
		return mcp.Encode(r.Message)
	}
	var line bytes.Buffer
	inner := h.wrap(slog.NewJSONHandler(&line, &slog.HandlerOptions{Level: r.Level, ReplaceAttr: messageAttr}))
	err := inner.Handle(ctx, r)
	return bytes.TrimSpace(line.Bytes()), err
}

// messageAttr drops the level, which the notification carries in its own member, and renames the
// message.
func messageAttr(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey {
		if _, own := a.Value.Any().(slog.Level); own {
			return slog.Attr{}
		}
	}
	if len(groups) == 0 && a.Key == slog.MessageKey {
		a.Key = "message"
	}
	return a
}

// loggingLevel returns the protocol's level for a slog level.
func loggingLevel(l slog.Level) mcp.LoggingLevel {
	levels := [...]struct {
		from  slog.Level
		level mcp.LoggingLevel
	}{
		{20, mcp.LevelEmergency}, {16, mcp.LevelAlert}, {12, mcp.LevelCritical},
		{slog.LevelError, mcp.LevelError}, {slog.LevelWarn, mcp.LevelWarning}, {2, mcp.LevelNotice},
		{slog.LevelInfo, mcp.LevelInfo},
	}
	for _, known := range levels {
		if l >= known.from {
			return known.level
		}
	}
	return mcp.LevelDebug
}

// messageLimit limits the log messages of a call.
type messageLimit struct {
	limit   *rate.Limiter
	dropped int
}

func (c *call) sendMessage(params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if c.messages == nil {
		c.messages = &messageLimit{limit: rate.NewLimiter(rate.Every(messagesEvery), messageBurst)}
	}
	if !c.messages.limit.Allow() {
		c.messages.dropped++
		return
	}
	_ = c.sendNotification(mcp.NotificationMessage, params) // the error means that the peer is gone
}

// reportDropped reports the number of dropped messages.
func (m *messageLimit) reportDropped(c *call) {
	if m.dropped == 0 || c.req.LogLevel.Severity() > mcp.LevelWarning.Severity() {
		return
	}
	text := fmt.Sprintf("%d log messages were dropped: there were more than %d in a second", m.dropped, messageBurst)
	data, err := mcp.Encode(text)
	if err != nil {
		return
	}
	params, err := mcp.Encode(&mcp.LoggingMessageParams{Level: mcp.LevelWarning, Data: data})
	if err == nil {
		m.dropped = 0
		_ = c.sendNotification(mcp.NotificationMessage, params) // the error means that the peer is gone
	}
}
