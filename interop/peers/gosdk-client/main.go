// Command gosdk-client is a client written with the official Go SDK. It starts the server given as its arguments, runs the
// checks of package checks over stdio, and prints one JSON line for each.
//
//	gosdk-client [-version REVISION] [-without NAME,NAME] COMMAND ARG...
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/interop/peers/checks"
	"github.com/dowel-mcp/dowel/interop/peers/report"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	version := flag.String("version", "", "the revision to ask for; the newest where it is empty")
	without := flag.String("without", "", "comma-separated names of checks to leave out")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: gosdk-client [-version REVISION] [-without NAME,NAME] COMMAND ARG...")
	}
	r := report.New(os.Stdout, strings.FieldsFunc(*without, func(c rune) bool { return c == ',' }))
	p := &peer{heard: &checks.Heard{}, progress: map[any]func(float64){}}
	r.Run("connect", func() error { return p.connect(*version, flag.Args()) })
	if p.session == nil {
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
	session *mcp.ClientSession
	heard   *checks.Heard

	mu       sync.Mutex
	progress map[any]func(float64) // by token
	tokens   int
}

func (p *peer) connect(version string, command []string) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "gosdk-client", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler:   p.elicit,
		CreateMessageHandler: p.sample,
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			p.heard.Add("notifications/tools/list_changed")
		},
		ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) {
			p.heard.Add("notifications/resources/updated")
		},
		ProgressNotificationHandler: p.onProgress,
	})
	client.AddRoots(&mcp.Root{URI: checks.RootURI, Name: "interop root"})
	ctx, cancel := context.WithTimeout(context.Background(), report.Limit)
	defer cancel()
	transport := &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	p.session = session
	return err
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
	if progress != nil {
		p.mu.Lock()
		p.tokens++
		token := fmt.Sprintf("progress-%d", p.tokens)
		p.progress[token] = progress
		p.mu.Unlock()
		params.SetProgressToken(token)
	}
	result, err := p.session.CallTool(ctx, params)
	if err != nil {
		return checks.Result{}, err
	}
	out := checks.Result{IsError: result.IsError}
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
