// Command mcpgo-client is a client written with mark3labs/mcp-go. It runs the checks of package
// checks on a server and prints one JSON line for each; see [checks.Main] for its command line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/dowel-mcp/dowel/interop/peers/checks"
	"github.com/dowel-mcp/dowel/interop/peers/report"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() { checks.Main("mcpgo-client", connect) }

type peer struct {
	client  *client.Client
	heard   *checks.Heard
	listen  func() // ends the stream of subscriptions/listen
	watched []string

	mu       sync.Mutex
	progress map[string]func(float64) // by token
	tokens   int
}

func connect(line checks.Line, heard *checks.Heard) (checks.Client, error) {
	p := &peer{heard: heard, progress: map[string]func(float64){}}
	carrier, err := carrier(line)
	if err != nil {
		return nil, err
	}
	p.client = client.NewClient(carrier,
		client.WithElicitationHandler(p), client.WithSamplingHandler(p), client.WithRootsHandler(p))
	p.client.OnNotification(p.onNotification)
	// The connection lives until the context of Start ends.
	if err := p.client.Start(context.Background()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), report.Limit)
	defer cancel()
	request := mcp.InitializeRequest{}
	request.Params.ClientInfo = mcp.Implementation{Name: "mcpgo-client", Version: "1.0.0"}
	request.Params.ProtocolVersion = line.Version
	if _, err := p.client.Initialize(ctx, request); err != nil {
		return nil, err
	}
	return p, p.relisten()
}

func carrier(line checks.Line) (transport.Interface, error) {
	switch line.Carrier {
	case checks.HTTP:
		options := []transport.StreamableHTTPCOption{transport.WithHTTPBasicClient(line.Web.Client())}
		if line.Version != "" && !mcp.IsModernProtocol(line.Version) {
			options = append(options, transport.WithContinuousListening()) // the GET stream
		}
		return transport.NewStreamableHTTP(line.URL, options...)
	case checks.SSE:
		return transport.NewSSE(line.URL, transport.WithHTTPClient(line.Web.Client()))
	}
	return transport.NewStdioWithOptions(line.Command[0], nil, line.Command[1:]), nil
}

// relisten opens the modern stream of changes in place of the last one. A legacy server sends
// changes without it.
func (p *peer) relisten() error {
	if !mcp.IsModernProtocol(p.Version()) {
		return nil
	}
	if p.listen != nil {
		p.listen()
	}
	filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: p.watched}
	stop, err := p.client.ListenAsync(context.Background(), filter, func(err error) { log.Printf("listening: %v", err) })
	p.listen = stop
	return err
}

func (p *peer) onNotification(note mcp.JSONRPCNotification) {
	p.heard.Add(note.Method)
	if note.Method != "notifications/progress" {
		return
	}
	fields := note.Params.AdditionalFields
	p.mu.Lock()
	tell := p.progress[fmt.Sprint(fields["progressToken"])]
	p.mu.Unlock()
	if done, ok := fields["progress"].(float64); ok && tell != nil {
		tell(done)
	}
}

// Elicit fills in the server's forms.
func (p *peer) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	p.heard.Add("elicitation/create")
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: checks.Form,
	}}, nil
}

// CreateMessage returns the reply of the model.
func (p *peer) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	p.heard.Add("sampling/createMessage")
	message := mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent(checks.ModelSaid)}
	return &mcp.CreateMessageResult{SamplingMessage: message, Model: "interop-model", StopReason: "endTurn"}, nil
}

// ListRoots returns the roots.
func (p *peer) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: checks.RootURI, Name: "interop root"}}}, nil
}

func (p *peer) Version() string                { return p.client.ProtocolVersion() }
func (p *peer) Ping(ctx context.Context) error { return p.client.Ping(ctx) }

func (p *peer) Close() error {
	if p.listen != nil {
		p.listen()
	}
	return p.client.Close()
}

func (p *peer) SetLevel(ctx context.Context, level string) error {
	request := mcp.SetLevelRequest{}
	request.Params.Level = mcp.LoggingLevel(level)
	return p.client.SetLevel(ctx, request)
}

func (p *peer) Watch(ctx context.Context, uri string) error {
	p.watched = append(p.watched, uri)
	if mcp.IsModernProtocol(p.Version()) {
		return p.relisten()
	}
	request := mcp.SubscribeRequest{}
	request.Params.URI = uri
	return p.client.Subscribe(ctx, request)
}

func (p *peer) IsCode(err error, code int) bool {
	switch code {
	case mcp.INVALID_PARAMS:
		return errors.Is(err, mcp.ErrInvalidParams)
	case mcp.RESOURCE_NOT_FOUND:
		return errors.Is(err, mcp.ErrResourceNotFound)
	}
	return false
}

func (p *peer) List(ctx context.Context, kind string) ([]string, error) {
	var names []string
	switch kind {
	case "tools":
		result, err := p.client.ListTools(ctx, mcp.ListToolsRequest{})
		if err != nil {
			return nil, err
		}
		for _, item := range result.Tools {
			names = append(names, item.Name)
		}
	case "prompts":
		result, err := p.client.ListPrompts(ctx, mcp.ListPromptsRequest{})
		if err != nil {
			return nil, err
		}
		for _, item := range result.Prompts {
			names = append(names, item.Name)
		}
	case "resources":
		result, err := p.client.ListResources(ctx, mcp.ListResourcesRequest{})
		if err != nil {
			return nil, err
		}
		for _, item := range result.Resources {
			names = append(names, item.URI)
		}
	case "templates":
		result, err := p.client.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
		if err != nil {
			return nil, err
		}
		for _, item := range result.ResourceTemplates {
			names = append(names, item.URITemplate.Raw())
		}
	}
	return names, nil
}

func (p *peer) Call(ctx context.Context, tool string, args map[string]any, progress func(float64)) (checks.Result, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name = tool
	if args != nil {
		request.Params.Arguments = args
	}
	if progress != nil {
		p.mu.Lock()
		p.tokens++
		token := fmt.Sprintf("progress-%d", p.tokens)
		p.progress[token] = progress
		p.mu.Unlock()
		request.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	result, err := p.client.CallTool(ctx, request)
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
		case mcp.TextContent:
			out.Kinds, out.Text = append(out.Kinds, "text"), out.Text+content.Text
		case mcp.ImageContent:
			out.Kinds = append(out.Kinds, "image")
		case mcp.AudioContent:
			out.Kinds = append(out.Kinds, "audio")
		case mcp.EmbeddedResource:
			out.Kinds = append(out.Kinds, "resource")
		}
	}
	return out, nil
}

func (p *peer) Read(ctx context.Context, uri string) (checks.Part, error) {
	request := mcp.ReadResourceRequest{}
	request.Params.URI = uri
	result, err := p.client.ReadResource(ctx, request)
	if err != nil {
		return checks.Part{}, err
	}
	if len(result.Contents) != 1 {
		return checks.Part{}, fmt.Errorf("%d parts, want one", len(result.Contents))
	}
	switch part := result.Contents[0].(type) {
	case mcp.TextResourceContents:
		return checks.Part{URI: part.URI, MIMEType: part.MIMEType, Text: part.Text}, nil
	case mcp.BlobResourceContents:
		return checks.Part{URI: part.URI, MIMEType: part.MIMEType, Blob: part.Blob}, nil
	default:
		return checks.Part{}, fmt.Errorf("a part of type %T", part)
	}
}

func (p *peer) Prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	request := mcp.GetPromptRequest{}
	request.Params.Name, request.Params.Arguments = name, args
	result, err := p.client.GetPrompt(ctx, request)
	if err != nil {
		return "", err
	}
	text := ""
	for _, message := range result.Messages {
		text += mcp.GetTextFromContent(message.Content)
	}
	return text, nil
}

func (p *peer) Complete(ctx context.Context, prompt, argument, value string) ([]string, error) {
	request := mcp.CompleteRequest{}
	request.Params.Ref = mcp.PromptReference{Type: "ref/prompt", Name: prompt}
	request.Params.Argument = mcp.CompleteArgument{Name: argument, Value: value}
	result, err := p.client.Complete(ctx, request)
	if err != nil {
		return nil, err
	}
	return result.Completion.Values, nil
}
