package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// upstreamPage is how many things a page of the upstream's lists holds.
const upstreamPage = 12

// newUpstream returns the upstream of the matrix: the everything server with more tools.
func newUpstream() *server.Server {
	s := everything.New(server.Options{PageSize: upstreamPage, Instructions: "Handle with care.", Logger: quiet, Cache: map[string]mcp.Cache{
		mcp.MethodListTools: {TTL: time.Minute, Scope: mcp.CachePublic}, mcp.MethodListPrompts: {TTL: 2 * time.Minute, Scope: mcp.CachePrivate},
		mcp.MethodReadResource: {TTL: 3 * time.Minute, Scope: mcp.CachePublic},
	}})
	addLife(s)
	addQuestions(s)
	server.RawTool(s, mcp.Tool{Name: "meta", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Meta:    mcp.Meta{"example.com/answer": json.RawMessage(`{"n":9007199254740993}`)},
			Content: []mcp.Content{mcp.Text(string(server.RequestFrom(ctx).Meta))},
		}, nil
	})
	return s
}

type nothing = struct{}

// addLife adds tools that end their process, and report it.
func addLife(s *server.Server) {
	var ended atomic.Int64
	server.Tool(s, "hang", "Hangs until it is cancelled.", func(ctx context.Context, _ nothing) (string, error) {
		server.Progress(ctx, 1, 2, "hanging")
		<-ctx.Done()
		ended.Add(1)
		return "", context.Cause(ctx)
	})
	server.Tool(s, "ended", "Tells how many calls of hang have ended.", func(context.Context, nothing) (string, error) {
		return fmt.Sprint(ended.Load()), nil
	})
	server.Tool(s, "levels", "Logs at several levels.", func(ctx context.Context, _ nothing) (string, error) {
		log := server.Log(ctx)
		for level, text := range map[slog.Level]string{slog.LevelDebug: "fine", slog.LevelInfo: "so", slog.LevelWarn: "hm", slog.LevelError: "ouch"} {
			log.Log(ctx, level, text)
		}
		return "logged", nil
	})
	server.Tool(s, "pid", "Tells which process this is.", func(context.Context, nothing) (string, error) { return fmt.Sprint(os.Getpid()), nil })
	var visited atomic.Bool
	server.Tool(s, "forget_visit", "Makes visit_first fail the next time.", func(context.Context, nothing) (string, error) {
		visited.Store(false)
		return "forgotten", nil
	})
	server.Tool(s, "visit_first", "Needs a page visited, once.", func(context.Context, nothing) (string, error) {
		if visited.Swap(true) {
			return "visited", nil
		}
		e := mcp.Errorf(mcpwire.CodeURLElicitationRequired, "visit a page first")
		e.Data = json.RawMessage(`{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://example.com/visit","message":"Please visit."}]}`)
		return "", e
	})
}

// addQuestions adds tools that ask the client's model, which clients of every revision may have.
func addQuestions(s *server.Server) {
	server.Tool(s, "three_questions", "Asks three times, each time for more.", func(ctx context.Context, _ nothing) (string, error) {
		said := ""
		for i := range 3 {
			answer, err := server.Sample(ctx, fmt.Sprint("q", i), says(fmt.Sprint("question ", i, " after ", said)))
			if err != nil {
				return "", err
			}
			said += fmt.Sprintf("[%s]", answer.Text())
		}
		return said, nil
	})
	server.Tool(s, "progress_around", "Reports progress before a question and behind it.", func(ctx context.Context, _ nothing) (string, error) {
		server.Progress(ctx, 1, 3, "before")
		answer, err := server.Sample(ctx, "q", says("well?"))
		if err != nil {
			return "", err
		}
		server.Progress(ctx, 2, 3, "behind")
		return answer.Text(), nil
	})
	server.Tool(s, "sample_with_tools", "Gives the model a tool.", func(ctx context.Context, _ nothing) (string, error) {
		question := says("use the tool")
		question.Tools = []mcp.Tool{{Name: "dig", InputSchema: json.RawMessage(`{"type":"object"}`)}}
		question.ToolChoice = &mcp.ToolChoice{Mode: "auto"}
		answer, err := server.Sample(ctx, "q", question)
		if err != nil {
			return "", err
		}
		return answer.Text(), nil
	})
}

func says(text string) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text(text)}}},
		MaxTokens: 10,
	}
}
