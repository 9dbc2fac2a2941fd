// Command dowel-client is a client written with dowel's package client. It runs the checks of
// package checks on a server and prints one JSON line for each; see [checks.Main] for its command
// line.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/interop/peers/checks"
	"github.com/dowel-mcp/dowel/interop/peers/report"
	"github.com/dowel-mcp/dowel/mcp"
)

func main() { checks.Main("dowel-client", connect) }

type peer struct {
	client   *client.Client
	heard    *checks.Heard
	watching sync.WaitGroup

	mu    sync.Mutex
	level mcp.LoggingLevel
}

func connect(line checks.Line, heard *checks.Heard) (checks.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), report.Limit)
	defer cancel()
	p := &peer{heard: heard}
	var target any = line.Command
	if line.Carrier != checks.Stdio {
		target = line.URL
	}
	c, err := client.Dial(ctx, target, &client.Options{
		Answers: client.Answers{
			Elicit: p.elicit,
			Sample: p.sample,
			Roots:  client.FixedRoots(mcp.Root{URI: checks.RootURI, Name: "interop root"}),
		},
		Wire:  client.Wire{Revision: mcp.Revision(line.Version)},
		HTTP:  client.HTTP{Client: line.Web.Client()},
		OnLog: func(mcp.LoggingMessageParams) { heard.Add("notifications/message") },
	})
	if err != nil {
		return nil, err
	}
	p.client = c
	return p, p.watch(ctx, mcp.SubscriptionFilter{ToolsListChanged: true})
}

func (p *peer) elicit(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
	p.heard.Add("elicitation/create")
	content, err := json.Marshal(checks.Form)
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: content}, err
}

func (p *peer) sample(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	p.heard.Add("sampling/createMessage")
	return &mcp.CreateMessageResult{
		Role: mcp.RoleAssistant, Model: "interop-model", Content: mcp.SamplingContent{mcp.Text(checks.ModelSaid)},
	}, nil
}

func (p *peer) watch(ctx context.Context, filter mcp.SubscriptionFilter) error {
	ctx, connected := context.WithCancelCause(context.WithoutCancel(ctx))
	w, err := p.client.Watch(ctx, filter)
	if err != nil {
		connected(err)
		return err
	}
	p.watching.Go(func() {
		defer connected(nil)
		for change, err := range w.Changes() {
			if err == nil && !change.Gap {
				p.heard.Add(change.Method)
			}
		}
	})
	return nil
}

func (p *peer) Version() string { return string(p.client.Server().Revision) }

func (p *peer) Ping(ctx context.Context) error {
	_, err := p.client.RoundTrip(ctx, &mcp.Request{Method: "ping"})
	return err
}

func (p *peer) Close() error {
	err := p.client.Close()
	p.watching.Wait()
	return err
}

func (p *peer) SetLevel(_ context.Context, level string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.level = mcp.LoggingLevel(level)
	return nil
}

func (p *peer) Watch(ctx context.Context, uri string) error {
	return p.watch(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
}

func (p *peer) IsCode(err error, code int) bool {
	var refused *mcp.Error
	return errors.As(err, &refused) && int(refused.Code) == code
}

func (p *peer) List(ctx context.Context, kind string) ([]string, error) {
	switch kind {
	case "tools":
		return names(p.client.Tools(ctx), func(t mcp.Tool) string { return t.Name })
	case "prompts":
		return names(p.client.Prompts(ctx), func(t mcp.Prompt) string { return t.Name })
	case "resources":
		return names(p.client.Resources(ctx), func(r mcp.Resource) string { return r.URI })
	case "templates":
		return names(p.client.ResourceTemplates(ctx), func(r mcp.ResourceTemplate) string { return r.URITemplate })
	}
	return nil, fmt.Errorf("there is no list of %s", kind)
}

func names[T any](items iter.Seq2[T, error], name func(T) string) ([]string, error) {
	all, err := client.All(items)
	var names []string
	for _, item := range all {
		names = append(names, name(item))
	}
	return names, err
}

func (p *peer) Call(ctx context.Context, tool string, args map[string]any, progress func(float64)) (checks.Result, error) {
	params := mcp.CallToolParams{Name: tool}
	if args != nil {
		data, err := json.Marshal(args)
		if err != nil {
			return checks.Result{}, err
		}
		params.Arguments = data
	}
	p.mu.Lock()
	options := client.CallOptions{LogLevel: p.level}
	p.mu.Unlock()
	if progress != nil {
		options.OnProgress = func(step mcp.ProgressParams) { progress(step.Progress) }
	}
	result, err := p.client.CallTool(ctx, params, options)
	if err != nil {
		return checks.Result{}, err
	}
	out := checks.Result{IsError: result.IsError, Structured: string(result.StructuredContent)}
	for _, content := range result.Content {
		out.Kinds, out.Text = append(out.Kinds, string(content.Type)), out.Text+content.Text
	}
	return out, nil
}

func (p *peer) Read(ctx context.Context, uri string) (checks.Part, error) {
	result, err := p.client.ReadResource(ctx, uri)
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
	result, err := p.client.GetPrompt(ctx, name, args)
	if err != nil {
		return "", err
	}
	text := ""
	for _, message := range result.Messages {
		text += message.Content.Text
	}
	return text, nil
}

func (p *peer) Complete(ctx context.Context, prompt, argument, value string) ([]string, error) {
	result, err := p.client.Complete(ctx, mcp.PromptRef(prompt), argument, value, nil)
	if err != nil {
		return nil, err
	}
	return result.Values, nil
}
