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

// Levels of the protocol that slog does not name.
const (
	LevelNotice    = slog.Level(2)
	LevelCritical  = slog.Level(12)
	LevelAlert     = slog.Level(16)
	LevelEmergency = slog.Level(20)
)

// LoggerKey is the attribute that names the logger of a message, where no group is open.
const LoggerKey = "logger"

// How many log messages one request sends: this many at once, and as many per second. Others are counted, and their number
// is the request's last message.
const (
	messageBurst  = 100
	messagesEvery = time.Second / messageBurst
)

// Log returns a logger whose messages go to the client, as far as the request asks for them: at least as severe as its log
// level, none where it has none or ctx is not a handler's. A message without attributes is sent as a string, one with
// attributes as an object with the member message. Name the logger by the attribute [LoggerKey]. Never log secrets, personal data
// or internals here.
func Log(ctx context.Context) *slog.Logger {
	c := callFrom(ctx)
	if c == nil || !c.wantsLogs() {
		return slog.New(slog.DiscardHandler)
	}
	h := newLogHandler()
	h.call = c
	return slog.New(h)
}

// NewLogHandler returns a handler for loggers that many requests share: each message goes to the client of the request
// whose context it is logged with, as [Log] says.
func NewLogHandler() slog.Handler { return newLogHandler() }

// logHandler writes a record's attributes with slog's own JSON handler.
type logHandler struct {
	call    *call // nil takes that of the context
	name    string
	grouped bool
	attrs   bool // something was added by WithAttrs
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

// wantsLogs reports whether the client gets messages at all.
func (c *call) wantsLogs() bool { return c.req.LogLevel != "" && !c.server.opts.NoLogging }

// WithAttrs implements [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	var rest []slog.Attr
	for _, a := range attrs {
		if !h.grouped && a.Key == LoggerKey {
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
		if !h.grouped && a.Key == LoggerKey {
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

// messageAttr drops what the notification says elsewhere.
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

// loggingLevel is the protocol's level of a message.
func loggingLevel(l slog.Level) mcp.LoggingLevel {
	levels := [...]struct {
		from  slog.Level
		level mcp.LoggingLevel
	}{
		{LevelEmergency, mcp.LevelEmergency}, {LevelAlert, mcp.LevelAlert}, {LevelCritical, mcp.LevelCritical},
		{slog.LevelError, mcp.LevelError}, {slog.LevelWarn, mcp.LevelWarning}, {LevelNotice, mcp.LevelNotice},
		{slog.LevelInfo, mcp.LevelInfo},
	}
	for _, known := range levels {
		if l >= known.from {
			return known.level
		}
	}
	return mcp.LevelDebug
}

// messageLimit bounds what a call logs.
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
	_ = c.sendNotification(mcp.NotificationMessage, params) // a peer that is gone needs none
}

// reportDropped says how many messages were dropped.
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
		_ = c.sendNotification(mcp.NotificationMessage, params) // a peer that is gone needs none
	}
}
