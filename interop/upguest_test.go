package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// guest is a client on the official Go SDK. It answers questions with its name.
type guest struct {
	t       *testing.T
	name    string
	session *gosdk.ClientSession

	mu       sync.Mutex
	progress map[string]func(float64) // by token
	updated  map[string]bool
}

func newGuest(t *testing.T, name, url, revision string) *guest {
	t.Helper()
	g := &guest{t: t, name: name, progress: map[string]func(float64){}, updated: map[string]bool{}}
	client := gosdk.NewClient(&gosdk.Implementation{Name: name, Version: "1.0.0"}, &gosdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *gosdk.ElicitRequest) (*gosdk.ElicitResult, error) {
			return &gosdk.ElicitResult{Action: "accept", Content: form(req.Params.RequestedSchema, name)}, nil
		},
		CreateMessageHandler: func(context.Context, *gosdk.CreateMessageRequest) (*gosdk.CreateMessageResult, error) {
			return &gosdk.CreateMessageResult{Role: "assistant", Model: "interop-model", Content: &gosdk.TextContent{Text: name}}, nil
		},
		ResourceUpdatedHandler: func(_ context.Context, req *gosdk.ResourceUpdatedNotificationRequest) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.updated[req.Params.URI] = true
		},
		ProgressNotificationHandler: func(_ context.Context, req *gosdk.ProgressNotificationClientRequest) {
			g.mu.Lock()
			tell := g.progress[fmt.Sprint(req.Params.ProgressToken)]
			g.mu.Unlock()
			if tell != nil {
				tell(req.Params.Progress)
			}
		},
	})
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	var err error
	g.session, err = client.Connect(ctx, &gosdk.StreamableClientTransport{Endpoint: url}, &gosdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.session.InitializeResult().ProtocolVersion; got != revision {
		t.Errorf("it speaks %s, want %s", got, revision)
	}
	return g
}

func (g *guest) close() {
	if err := g.session.Close(); err != nil {
		g.t.Errorf("closing: %v", err)
	}
}

// form returns content for the forms of the servers.
func form(schema any, name string) map[string]any {
	text, _ := json.Marshal(schema) // it was read from JSON
	if strings.Contains(string(text), `"username"`) {
		return map[string]any{"username": name, "email": "ada@example.com"}
	}
	return map[string]any{"name": name}
}

// call makes a call and returns its result as JSON.
func (g *guest) call(c toolCall, progress func(float64)) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	return g.callWith(ctx, c, progress)
}

func (g *guest) callWith(ctx context.Context, c toolCall, progress func(float64)) (string, error) {
	params := &gosdk.CallToolParams{Name: c.Tool, Arguments: map[string]any{}}
	if c.Args != nil {
		params.Arguments = c.Args
	}
	if progress != nil {
		token := "of " + c.Tool
		g.mu.Lock()
		g.progress[token] = progress
		g.mu.Unlock()
		params.SetProgressToken(token)
		defer func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			delete(g.progress, token)
		}()
	}
	result, err := g.session.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(result)
	if err == nil && result.IsError {
		err = fmt.Errorf("it failed: %s", text)
	}
	return string(text), err
}

// unclearAsker is in the refusal of a question that several clients of a legacy server may have
// caused. All clients of these tests cancel a call, and on a busy machine another call of the
// server may ask at that moment. Then a client calls again, as a user would.
const unclearAsker = "it is not clear which client to ask"

// ask makes a call that asks.
func (g *guest) ask(c toolCall) (got string, err error) {
	for until := time.Now().Add(runLimit); time.Now().Before(until); {
		if got, err = g.call(c, nil); !strings.Contains(got, unclearAsker) {
			break
		}
		g.t.Logf("%s: %s", c.Tool, got)
	}
	return got, err
}

// checkLists checks that the lists contain all wanted items.
func (g *guest) checkLists(want expected) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	see := func(what string, got []string, want []string) {
		for _, name := range want {
			if !slices.Contains(got, name) {
				g.t.Errorf("%s is not among the %s: %v", name, what, got)
			}
		}
	}
	var tools, prompts, resources []string
	for tool, err := range g.session.Tools(ctx, nil) {
		if err != nil {
			g.t.Fatalf("listing tools: %v", err)
		}
		tools = append(tools, tool.Name)
	}
	for prompt, err := range g.session.Prompts(ctx, nil) {
		if err != nil {
			g.t.Fatalf("listing prompts: %v", err)
		}
		prompts = append(prompts, prompt.Name)
	}
	for resource, err := range g.session.Resources(ctx, nil) {
		if err != nil {
			g.t.Fatalf("listing resources: %v", err)
		}
		resources = append(resources, resource.URI)
	}
	see("tools", tools, want.Tools)
	see("prompts", prompts, want.Prompts)
	see("resources", resources, want.Watched)
}

// useResident makes the same calls as node/up.mjs, with a client on the official Go SDK.
func useResident(t *testing.T, url, revision string, want expected) {
	g := newGuest(t, "Go-"+revision, url, revision)
	g.checkLists(want)
	for _, c := range want.Calls {
		mine := toolCall{Tool: c.Tool, Args: map[string]any{}}
		for key, value := range c.Args {
			if text, ok := value.(string); ok {
				value = strings.ReplaceAll(text, "ME", g.name)
			}
			mine.Args[key] = value
		}
		if got, err := g.call(mine, nil); err != nil || !strings.Contains(got, strings.ReplaceAll(c.Want, "ME", g.name)) {
			t.Errorf("%s: %s, %v, want %q in it", c.Tool, got, err, c.Want)
		}
	}
	for _, c := range want.Progress {
		g.checkProgress(c)
	}
	for _, c := range want.Cancel {
		ctx, cancel := context.WithCancel(context.Background())
		if got, err := g.callWith(ctx, c, func(float64) { cancel() }); err == nil {
			t.Errorf("%s was cancelled and answered: %s", c.Tool, got)
		} else if ctx.Err() == nil {
			t.Errorf("%s ended before it was cancelled: %v", c.Tool, err)
		}
		cancel()
	}
	for _, c := range want.Asks {
		if got, err := g.ask(c); err != nil || !strings.Contains(got, g.name) {
			t.Errorf("%s: %s, %v, want the answer of %s in it", c.Tool, got, err, g.name)
		}
	}
	for _, uri := range want.Watched {
		g.awaitUpdate(uri)
	}
	g.close()
}

func (g *guest) checkProgress(c toolCall) {
	var mu sync.Mutex
	var steps []float64
	heard := func() []float64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(steps)
	}
	_, err := g.call(c, func(step float64) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, step)
	})
	// The SDK may drop the last notification if it arrives together with the result.
	if got := heard(); err != nil || len(got) < len(c.Steps)-1 || !slices.Equal(got, c.Steps[:min(len(got), len(c.Steps))]) {
		g.t.Errorf("progress of %s: %v, %v, want %v", c.Tool, got, err, c.Steps)
	}
}

// awaitUpdate subscribes to a resource and waits for an update of it.
func (g *guest) awaitUpdate(uri string) {
	if err := g.session.Subscribe(context.Background(), &gosdk.SubscribeParams{URI: uri}); err != nil {
		g.t.Errorf("subscribing to %s: %v", uri, err)
		return
	}
	heard := func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.updated[uri]
	}
	for end := time.Now().Add(runLimit); !heard(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			g.t.Errorf("no update of %s", uri)
			return
		}
	}
}
