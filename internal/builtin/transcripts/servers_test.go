package transcripts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
)

// played is a handler for a transcript.
type played struct {
	handler   func() mcp.Handler
	revisions []mcp.Revision // nil for all
}

// servers are named by the comment "# server: <name>" of a transcript; without one it is
// everything.
var servers = map[string]played{
	"everything":  {handler: func() mcp.Handler { return everything.New(quiet) }},
	"catalog":     {handler: catalog},
	"pages":       {handler: pages},
	"failing":     {handler: failing},
	"asking":      {handler: newAskingServer},
	"completing":  {handler: completing},
	"changing":    {handler: changing},
	"bare":        {handler: func() mcp.Handler { return server.New("bare", "1", &server.Options{NoLogging: true}) }},
	"modern-only": {handler: catalog, revisions: []mcp.Revision{mcp.Revision20260728}},
	"no-newer":    {handler: catalog, revisions: []mcp.Revision{mcp.Revision20250618, mcp.Revision20250326}},
}

// quiet hides deliberate errors of handlers from the tests' output.
var quiet = server.Options{Logger: slog.New(slog.DiscardHandler)}

func (p played) options() transport.ServerOptions {
	return transport.ServerOptions{Revisions: p.revisions, Logger: quiet.Logger}
}

type none = struct{}

var (
	icons = []mcp.Icon{{Src: "https://example.com/icon.png", MIMEType: "image/png", Sizes: []string{"48x48"}}}
	meta  = mcp.Meta{"com.example/tag": "x"}
	forus = &mcp.Annotations{Audience: []mcp.Role{mcp.RoleUser}, Priority: new(0.5), LastModified: "2025-01-12T15:00:58Z"}
)

// catalog offers one of each kind that says all that can be said of it, one that says no more than
// it must, and one that returns all that content can have.
func catalog() mcp.Handler {
	o := quiet
	o.Info = mcp.Implementation{Title: "Catalog", Description: "Offers things.", WebsiteURL: "https://example.com", Icons: icons}
	o.Instructions = "Look around."
	s := server.New("catalog", "1", &o)
	server.Tool(s, "full", "Says all.", func(context.Context, none) (map[string]int, error) { return map[string]int{"a": 1}, nil },
		server.ToolOptions{Title: "Full", Icons: icons, Meta: meta, Annotations: &mcp.ToolAnnotations{Title: "Full", ReadOnlyHint: new(true)}})
	server.Tool(s, "least", "", func(context.Context, none) (string, error) { return "least", nil })
	server.Tool(s, "array", "Returns no object.", func(context.Context, none) ([]int, error) { return []int{1, 2}, nil })
	server.Tool(s, "content", "Returns content that says all.", func(context.Context, none) ([]mcp.Content, error) { return everyContent(), nil })

	server.Prompt(s, "full", "Says all.", func(_ context.Context, in struct {
		Word string `json:"word" title:"Word" doc:"Any word"`
	}) ([]mcp.PromptMessage, error) {
		messages := []mcp.PromptMessage{{Role: mcp.RoleAssistant, Content: mcp.Text(in.Word)}}
		for _, c := range everyContent() {
			messages = append(messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: c})
		}
		return messages, nil
	}, server.PromptOptions{Title: "Full", Icons: icons, Meta: meta})
	server.Prompt(s, "least", "", func(context.Context, none) (string, error) { return "least", nil })

	full := server.ResourceOptions{Name: "full", Title: "Full", MIMEType: "text/plain", Icons: icons, Annotations: forus, Meta: meta}
	server.Resource(s, "x:item/{name}", "Says all.", func(_ context.Context, in struct {
		Name string `uri:"name"`
	}) (string, error) {
		return in.Name, nil
	}, full)
	full.Size = new(int64(4))
	server.Resource(s, "x://full", "Says all.", func(context.Context, none) (mcp.ResourceContents, error) {
		return mcp.ResourceContents{Text: "full", Meta: meta}, nil
	}, full)
	server.Resource(s, "x://least", "", func(context.Context, none) ([]byte, error) { return []byte{0, 1}, nil })
	return s
}

func everyContent() []mcp.Content {
	text, link := mcp.Text("text"), mcp.Link(mcp.Resource{URI: "x://full", Name: "full", Title: "Full", Icons: icons, Annotations: forus, Meta: meta})
	text.Annotations, text.Meta = forus, meta
	return []mcp.Content{
		text, mcp.Image([]byte{1}, "image/png"), mcp.Audio([]byte{2}, "audio/wav"), link,
		mcp.Embed(mcp.ResourceContents{URI: "x://full", MIMEType: "text/plain", Text: "full", Meta: meta}),
	}
}

// pages offers five of each kind, two on a page.
func pages() mcp.Handler {
	o := quiet
	o.PageSize = 2
	s := server.New("pages", "1", &o)
	text := func(context.Context, none) (string, error) { return "text", nil }
	for _, name := range strings.Split("abcde", "") {
		server.Tool(s, name, "", text)
		server.Prompt(s, name, "", text)
		server.Resource(s, "x://"+name, "", text)
		server.Resource(s, name+":{id}", "", func(_ context.Context, in struct {
			ID string `uri:"id"`
		}) (string, error) {
			return in.ID, nil
		})
	}
	return s
}

// failing fails in every way that a handler can, and completes too much.
func failing() mcp.Handler {
	o := quiet
	o.Limit = server.Limit{PerSecond: 0.1, Burst: 4}
	s := server.New("failing", "1", &o)
	fail := func(err error) func(context.Context, none) (string, error) {
		return func(context.Context, none) (string, error) { return "", err }
	}
	secret := errors.New("the password of the database is wrong")
	server.Tool(s, "error", "", fail(errors.New("the office is closed")))
	server.Tool(s, "panic", "", func(context.Context, none) (string, error) { panic(secret) })
	server.Tool(s, "custom", "", fail(&mcp.Error{Code: 7, Message: "no", Data: json.RawMessage(`{"why":"because"}`)}))
	server.Tool(s, "not_found", "", fail(mcp.Errorf(mcp.CodeResourceNotFound, "no such thing")))
	server.Tool(s, "url_required", "", fail(&mcp.Error{Code: mcpwire.CodeURLElicitationRequired, Message: "visit first", Data: json.RawMessage(
		`{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://example.com","message":"Sign in."}]}`)}))
	server.Tool(s, "output", "", func(context.Context, none) (json.RawMessage, error) { return json.RawMessage(`{"n":"x"}`), nil },
		server.ToolOptions{OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`)})
	server.Prompt(s, "error", "", fail(secret))
	server.Resource(s, "x://error", "", fail(secret))
	server.Prompt(s, "complete", "", func(_ context.Context, in map[string]string) (string, error) { return in["many"], nil }, server.PromptOptions{
		Arguments: []mcp.PromptArgument{{Name: "many"}, {Name: "error"}, {Name: "plain"}, {Name: "settled"}},
		Complete: map[string]server.CompleteFunc{
			"many": func(context.Context, string, map[string]string) ([]string, error) {
				return slices.Repeat([]string{"x"}, 101), nil
			},
			"error": func(context.Context, string, map[string]string) ([]string, error) { return nil, secret },
			"settled": func(_ context.Context, value string, settled map[string]string) ([]string, error) {
				return []string{settled["plain"] + value}, nil
			},
		},
	})
	return s
}

// newAskingServer returns a handler that asks in every method that allows questions, and in one
// that does not.
func newAskingServer() mcp.Handler {
	s := server.New("asking", "1", &quiet)
	name := func(ctx context.Context, _ none) (string, error) {
		name, err := server.Ask[string](ctx, "name", "What is your name?")
		return "Hello, " + name + ".", err
	}
	server.Tool(s, "name", "", name)
	server.Prompt(s, "name", "", name)
	server.Resource(s, "x://name", "", name)
	server.Tool(s, "progress", "", func(ctx context.Context, in none) (string, error) {
		server.Progress(ctx, 1, 2, "asking")
		text, err := name(ctx, in)
		if err != nil {
			return "", err
		}
		server.Progress(ctx, 2, 2, "asked")
		return text, nil
	})
	server.Tool(s, "choice", "", func(ctx context.Context, _ none) (string, error) {
		choice, err := server.Ask[struct {
			Size  string   `json:"size" enum:"s,m" default:"m"`
			Extra []string `json:"extra,omitempty" enum:"milk,sugar"`
		}](ctx, "choice", "What do you want?")
		return fmt.Sprint(choice.Size, choice.Extra), err
	})
	server.Tool(s, "tool_use", "", func(ctx context.Context, _ none) (string, error) {
		answer, err := server.Sample(ctx, "tool_use", mcp.CreateMessageParams{
			Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("Compute 1+1.")}}},
			MaxTokens: 10, Tools: []mcp.Tool{{Name: "add", InputSchema: json.RawMessage(`{"type":"object"}`)}},
		})
		if err != nil {
			return "", err
		}
		return answer.Content[0].String(), nil
	})
	return s
}

// completing tells the client that a visit is over. A handler does so by hand: package server sends
// no such notification, which is one of 2025-11-25 alone.
func completing() mcp.Handler {
	s := server.New("completing", "1", &quiet)
	server.Tool(s, "visit", "", func(context.Context, none) (string, error) { return "Signed in.", nil })
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return next.ServeMCP(ctx, req)
			}
			if rawjson.Lookup(req.Params, "inputResponses") == nil {
				ask := json.RawMessage(`{"mode":"url","message":"Sign in.","url":"https://example.com","elicitationId":"visit"}`)
				return &mcp.Result{Type: mcp.ResultInputRequired, Value: &mcp.InputRequiredResult{
					InputRequests: map[string]mcp.InputRequest{"visit": {Method: mcp.MethodElicit, Params: ask}},
				}}, nil
			}
			err := req.Peer.Notify(ctx, mcp.Notification{Method: mcpwire.NotificationElicitationCompleted, Params: json.RawMessage(`{"elicitationId":"visit"}`)})
			if err != nil {
				return nil, err
			}
			return next.ServeMCP(ctx, req)
		})
	})
	return s
}

// changing makes the requested changes after the answer has been sent, because messages sent at the
// same time have no fixed order.
func changing() mcp.Handler {
	o := quiet
	o.Declare = []server.Kind{server.KindTool, server.KindPrompt, server.KindResource}
	s := server.New("changing", "1", &o)
	text := func(context.Context, none) (string, error) { return "text", nil }
	changes := map[string]func(){
		"tools":     func() { server.Tool(s, rand.Text(), "", text) },
		"prompts":   func() { server.Prompt(s, rand.Text(), "", text) },
		"resources": func() { server.Resource(s, "x://"+rand.Text(), "", text) },
		"update":    func() { s.Updated("x://dir/watched") },
		"close":     func() { s.Close() },
	}
	server.Tool(s, "change", "", func(_ context.Context, in struct {
		What string `json:"what"`
	}) (string, error) {
		time.AfterFunc(100*time.Millisecond, changes[in.What])
		return "soon", nil
	})
	return s
}
