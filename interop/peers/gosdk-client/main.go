// Command gosdk-client is a client written with the official Go SDK. It runs the checks of package
// checks on a server and prints one JSON line for each; see [checks.Main] for its command line.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os/exec"
	"sync"

	"github.com/dowel-mcp/dowel/interop/peers/checks"
	"github.com/dowel-mcp/dowel/interop/peers/report"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() { checks.Main("gosdk-client", connect) }

// modern is the first revision without sessions.
const modern = "2026-07-28"

type peer struct {
	session *mcp.ClientSession
	heard   *checks.Heard

	mu       sync.Mutex
	progress map[any]func(float64) // by token
	tokens   int
	level    string // of log messages, in the modern era
}

func connect(line checks.Line, heard *checks.Heard) (checks.Client, error) {
	p := &peer{heard: heard, progress: map[any]func(float64){}}
	client := mcp.NewClient(&mcp.Implementation{Name: "gosdk-client", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler:   p.elicit,
		CreateMessageHandler: p.sample,
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			p.heard.Add("notifications/tools/list_changed")
		},
		ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) {
			p.heard.Add("notifications/resources/updated")
		},
		LoggingMessageHandler: func(context.Context, *mcp.LoggingMessageRequest) {
			p.heard.Add("notifications/message")
		},
		ProgressNotificationHandler: p.onProgress,
	})
	client.AddRoots(&mcp.Root{URI: checks.RootURI, Name: "interop root"})
	ctx, cancel := context.WithTimeout(context.Background(), report.Limit)
	defer cancel()
	if line.Carrier == checks.SSE {
		ctx = context.Background() // the SDK ends the stream with it; the report bounds the check of connecting
	}
	session, err := client.Connect(ctx, transport(line), &mcp.ClientSessionOptions{ProtocolVersion: line.Version})
	if err != nil {
		return nil, err
	}
	p.session = session
	return p, nil
}

func transport(line checks.Line) mcp.Transport {
	switch line.Carrier {
	case checks.HTTP:
		return &mcp.StreamableClientTransport{Endpoint: line.URL, HTTPClient: line.Web.Client()}
	case checks.SSE:
		return &mcp.SSEClientTransport{Endpoint: line.URL, HTTPClient: line.Web.Client()}
	}
	return &mcp.CommandTransport{Command: exec.Command(line.Command[0], line.Command[1:]...)}
}

func (p *peer) elicit(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.heard.Add("elicitation/create")
	return &mcp.ElicitResult{Action: "accept", Content: checks.Form}, nil
}

func (p *peer) sample(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	p.heard.Add("sampling/createMessage")
	return &mcp.CreateMessageResult{Role: "assistant", Model: "interop-model", Content: &mcp.TextContent{Text: checks.ModelSaid}}, nil
}

func (p *peer) onProgress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	p.mu.Lock()
	tell := p.progress[fmt.Sprint(req.Params.ProgressToken)]
	p.mu.Unlock()
	if tell != nil {
		tell(req.Params.Progress)
	}
}

func (p *peer) Version() string                { return p.session.InitializeResult().ProtocolVersion }
func (p *peer) Ping(ctx context.Context) error { return p.session.Ping(ctx, nil) }
func (p *peer) Close() error                   { return p.session.Close() }

func (p *peer) SetLevel(ctx context.Context, level string) error {
	if p.Version() >= modern {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.level = level
		return nil
	}
	return p.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)})
}

func (p *peer) Watch(ctx context.Context, uri string) error {
	return p.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
}

func (p *peer) IsCode(err error, code int) bool {
	var wire *jsonrpc.Error
	return errors.As(err, &wire) && wire.Code == int64(code)
}

func (p *peer) List(ctx context.Context, kind string) ([]string, error) {
	switch kind {
	case "tools":
		return names(p.session.Tools(ctx, nil), func(t *mcp.Tool) string { return t.Name })
	case "prompts":
		return names(p.session.Prompts(ctx, nil), func(t *mcp.Prompt) string { return t.Name })
	case "resources":
		return names(p.session.Resources(ctx, nil), func(r *mcp.Resource) string { return r.URI })
	case "templates":
		return names(p.session.ResourceTemplates(ctx, nil), func(r *mcp.ResourceTemplate) string { return r.URITemplate })
	}
	return nil, fmt.Errorf("there is no list of %s", kind)
}

func names[T any](items iter.Seq2[T, error], name func(T) string) ([]string, error) {
	var all []string
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		all = append(all, name(item))
	}
	return all, nil
}

func (p *peer) Call(ctx context.Context, tool string, args map[string]any, progress func(float64)) (checks.Result, error) {
	params := &mcp.CallToolParams{Name: tool}
	if args != nil {
		params.Arguments = args
	}
	p.mu.Lock()
	if p.level != "" {
		params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: p.level}
	}
	if progress != nil {
		p.tokens++
		token := fmt.Sprintf("progress-%d", p.tokens)
		p.progress[token] = progress
		params.SetProgressToken(token)
	}
	p.mu.Unlock()
	result, err := p.session.CallTool(ctx, params)
	if err != nil {
		return checks.Result{}, err
	}
	out := checks.Result{IsError: result.IsError}
	if result.StructuredContent != nil {
		data, err := json.Marshal(result.StructuredContent)
		if err != nil {
			return out, err
		}
		out.Structured = string(data)
	}
	for _, content := range result.Content {
		switch content := content.(type) {
		case *mcp.TextContent:
			out.Kinds, out.Text = append(out.Kinds, "text"), out.Text+content.Text
		case *mcp.ImageContent:
			out.Kinds = append(out.Kinds, "image")
		case *mcp.AudioContent:
			out.Kinds = append(out.Kinds, "audio")
		case *mcp.EmbeddedResource:
			out.Kinds = append(out.Kinds, "resource")
		}
	}
	return out, nil
}

func (p *peer) Read(ctx context.Context, uri string) (checks.Part, error) {
	result, err := p.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return checks.Part{}, err
	}
	if len(result.Contents) != 1 {
		return checks.Part{}, fmt.Errorf("%d parts, want one", len(result.Contents))
	}
	part := result.Contents[0]
	return checks.Part{URI: part.URI, MIMEType: part.MIMEType, Text: part.Text, Blob: base64.StdEncoding.EncodeToString(part.Blob)}, nil
}

func (p *peer) Prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	result, err := p.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		return "", err
	}
	text := ""
	for _, message := range result.Messages {
		if content, ok := message.Content.(*mcp.TextContent); ok {
			text += content.Text
		}
	}
	return text, nil
}

func (p *peer) Complete(ctx context.Context, prompt, argument, value string) ([]string, error) {
	result, err := p.session.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: prompt},
		Argument: mcp.CompleteParamsArgument{Name: argument, Value: value},
	})
	if err != nil {
		return nil, err
	}
	return result.Completion.Values, nil
}
