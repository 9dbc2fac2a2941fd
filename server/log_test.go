package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

type jsonRaw = json.RawMessage

func logged(t *testing.T, level mcp.LoggingLevel, opts server.Options, fn func(ctx context.Context)) []string {
	t.Helper()
	s := newServer(opts)
	server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (struct{}, error) {
		fn(ctx)
		return struct{}{}, nil
	})
	req := request(mcp.MethodCallTool, `{"name":"t"}`)
	req.LogLevel = level
	want(t, serve(t, s, req), `{"content":[]}`)
	return req.Peer.(*peer).params()
}

func TestLog(t *testing.T) {
	got := logged(t, mcp.LevelDebug, server.Options{}, func(ctx context.Context) {
		log := server.Log(ctx)
		log.Info("plain \"text\"")
		log.Warn("with", "n", 1, "level", "own", "err", context.Canceled)
		log.With("logger", "db", "a", 1).Error("named", slog.Group("g", "b", 2))
		log.WithGroup("g").Debug("grouped", "logger", "inner")
		log.With("logger", "db").Info("only named")
		log.Info("named here", "logger", "x")
		slog.New(server.NewLogHandler()).InfoContext(ctx, "shared")
		slog.New(server.NewLogHandler()).Info("lost")
	})
	want(t, strings.Join(got, "\n"), strings.Join([]string{
		`{"level":"info","data":"plain \"text\""}`,
		`{"level":"warning","data":{"message":"with","n":1,"level":"own","err":"context canceled"}}`,
		`{"level":"error","logger":"db","data":{"message":"named","a":1,"g":{"b":2}}}`,
		`{"level":"debug","data":{"message":"grouped","g":{"logger":"inner"}}}`,
		`{"level":"info","logger":"db","data":"only named"}`,
		`{"level":"info","logger":"x","data":"named here"}`,
		`{"level":"info","data":"shared"}`,
	}, "\n"))
}

func TestLogLevels(t *testing.T) {
	all := func(ctx context.Context) {
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, 2, slog.LevelWarn, slog.LevelError, 12, 16, 20} {
			server.Log(ctx).Log(ctx, level, "x")
		}
	}
	for i, level := range mcpwire.LoggingLevels() {
		got := logged(t, level, server.Options{}, all)
		if len(got) != len(mcpwire.LoggingLevels())-i || !strings.Contains(got[0], fmt.Sprintf(`"level":%q`, level)) {
			t.Errorf("%s: %v", level, got)
		}
	}
	if got := logged(t, "", server.Options{}, all); got != nil {
		t.Errorf("no level: %v", got)
	}
	if got := logged(t, mcp.LevelDebug, server.Options{NoLogging: true}, all); got != nil {
		t.Errorf("no logging: %v", got)
	}
	server.Log(t.Context()).Error("nobody hears")
}

func TestLogIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := logged(t, mcp.LevelInfo, server.Options{}, func(ctx context.Context) {
			for range 150 {
				server.Log(ctx).Info("x")
			}
			time.Sleep(time.Second / 2)
			for range 60 {
				server.Log(ctx).Info("y")
			}
		})
		if len(got) != 151 {
			t.Fatalf("%d messages", len(got))
		}
		want(t, got[150], `{"level":"warning","data":"60 log messages were dropped: there were more than 100 in a second"}`)
	})
}
