// Command mcpgo-client is a client written with mark3labs/mcp-go. It starts the server given as its arguments, runs the
// checks of package checks over stdio, and prints one JSON line for each.
//
//	mcpgo-client [-version REVISION] [-without NAME,NAME] COMMAND ARG...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/interop/peers/checks"
	"github.com/dowel-mcp/dowel/interop/peers/report"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() {
	version := flag.String("version", "", "the revision to ask for; the newest where it is empty")
	without := flag.String("without", "", "comma-separated names of checks to leave out")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: mcpgo-client [-version REVISION] [-without NAME,NAME] COMMAND ARG...")
	}
	r := report.New(os.Stdout, strings.FieldsFunc(*without, func(c rune) bool { return c == ',' }))
	p := &peer{heard: &checks.Heard{}, progress: map[string]func(float64){}}
	connected := false
	r.Run("connect", func() error {
		err := p.connect(*version, flag.Args())
		connected = err == nil
		return err
	})
	if !connected {
		os.Exit(1)
	}
	if *version != "" {
		r.Run("version", func() error {
			if got := p.Version(); got != *version {
				return fmt.Errorf("got %s, want %s", got, *version)
			}
			return nil
		})
	}
	checks.Run(r, p, p.heard)
	r.Run("close", p.Close)
	os.Exit(r.Finish())
}

type peer struct {
	client  *client.Client
	heard   *checks.Heard
	listen  func() // ends the stream of subscriptions/listen
	watched []string

	mu       sync.Mutex
	progress map[string]func(float64) // by token
	tokens   int
}

func (p *peer) connect(version string, command []string) error {
	stdio := transport.NewStdioWithOptions(command[0], nil, command[1:])
	p.client = client.NewClient(stdio,
		client.WithElicitationHandler(p), client.WithSamplingHandler(p), client.WithRootsHandler(p))
	p.client.OnNotification(p.onNotification)
	// The context of Start is the life of the process.
	if err := p.client.Start(context.Background()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), report.Limit)
	defer cancel()
	request := mcp.InitializeRequest{}
	request.Params.ClientInfo = mcp.Implementation{Name: "mcpgo-client", Version: "1.0.0"}
	request.Params.ProtocolVersion = version
	if _, err := p.client.Initialize(ctx, request); err != nil {
		return err
	}
	return p.relisten()
}

// relisten opens the modern stream of changes, in place of the one before; a legacy server tells unasked.
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

// Elicit answers the server's forms.
func (p *peer) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	p.heard.Add("elicitation/create")
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: checks.Form,
	}}, nil
}

// CreateMessage answers for the model.
func (p *peer) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	p.heard.Add("sampling/createMessage")
	message := mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent(checks.ModelSaid)}
	return &mcp.CreateMessageResult{SamplingMessage: message, Model: "interop-model", StopReason: "endTurn"}, nil
}

// ListRoots answers the roots.
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
