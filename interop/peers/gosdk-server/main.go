// Command gosdk-server is a server written with the official Go SDK. It has the features of package
// contract, on stdio or with -http at an address: at /mcp with sessions (which makes it legacy), at
// /stateless without, at /json without and without event streams, and at /sse with HTTP+SSE of
// 2024-11-05. It speaks both eras: it asks questions by input requests, and the SDK asks them live
// in the legacy era.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/interop/peers/contract"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	address := flag.String("http", "", "serve over HTTP at this address")
	flag.Parse()
	server := mcp.NewServer(&mcp.Implementation{Name: "gosdk-server", Version: "1.0.0"}, &mcp.ServerOptions{
		CompletionHandler:  complete,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		PageSize:           4, // so that lists have several pages
	})
	addTools(server)
	addAsking(server)
	addResources(server)
	addPrompts(server)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go touch(ctx, server)
	if *address != "" {
		log.Fatal(http.ListenAndServe(*address, web(server)))
	}
	if err := server.Run(ctx, &mcp.StdioTransport{}); err != nil {
		log.Printf("serving on stdio: %v", err)
	}
}

func web(server *mcp.Server) http.Handler {
	same := func(*http.Request) *mcp.Server { return server }
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{PropagateRequestCancellation: true}))
	mux.Handle("/stateless", mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true,
	}))
	mux.Handle("/json", mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	mux.Handle("/sse", mcp.NewSSEHandler(same, nil))
	return mux
}

// touch sends updates of the watched resource, one every contract.WatchPeriod.
func touch(ctx context.Context, server *mcp.Server) {
	for tick := time.Tick(contract.WatchPeriod); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			params := &mcp.ResourceUpdatedNotificationParams{URI: contract.WatchedURI}
			if err := server.ResourceUpdated(ctx, params); err != nil {
				log.Printf("telling of a change of %s: %v", contract.WatchedURI, err)
			}
		}
	}
}

func text(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }

func answer(s string) *mcp.CallToolResult { return &mcp.CallToolResult{Content: text(s)} }

type none struct{}

// tool adds a tool without arguments.
func tool(server *mcp.Server, name, description string, call func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
			result, err := call(ctx, req)
			return result, nil, err
		})
}

func addTools(server *mcp.Server) {
	tool(server, contract.SimpleText, "Answers a text.", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return answer(contract.SimpleAnswer), nil
	})
	tool(server, contract.Failing, "Fails.", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New(contract.FailingAnswer)
	})
	tool(server, contract.Progress, "Takes a while and says how far it is.", progress)
	tool(server, contract.ToolChange, "Adds a tool.", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tool(server, "added_later", "Was added while the server ran.", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return answer("added"), nil
		})
		return answer("the list has changed"), nil
	})

	tool(server, contract.Logging, "Logs three messages.", logging)
	tool(server, contract.Wait, "Waits until it is cancelled.", wait)
	tool(server, contract.Cancelled, "Counts calls that were cancelled.", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return answer(fmt.Sprint(cancelled.Load())), nil
	})

	type echoIn struct {
		Message string `json:"message" jsonschema:"what to say"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: contract.Echo, Description: "Says what it is told."},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoIn) (*mcp.CallToolResult, any, error) {
			return answer(in.Message), nil, nil
		})

	type addIn struct {
		A float64 `json:"a" jsonschema:"the first number"`
		B float64 `json:"b" jsonschema:"the second number"`
	}
	type addOut struct {
		Sum float64 `json:"sum"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: contract.Add, Description: "Adds two numbers."},
		func(_ context.Context, _ *mcp.CallToolRequest, in addIn) (*mcp.CallToolResult, addOut, error) {
			return nil, addOut{in.A + in.B}, nil
		})
}

func progress(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	for _, done := range []float64{0, 50, 100} {
		if token != nil {
			params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100, Message: "working"}
			if err := req.Session.NotifyProgress(ctx, params); err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(contract.ProgressStep):
		}
	}
	return answer("done"), nil
}

func logging(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for _, message := range contract.LogMessages {
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: message}); err != nil {
			return nil, err
		}
	}
	return answer("logged"), nil
}

// cancelled counts the calls of wait that were cancelled.
var cancelled atomic.Int64

func wait(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if token := req.Params.GetProgressToken(); token != nil {
		params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1}
		if err := req.Session.NotifyProgress(ctx, params); err != nil {
			return nil, err
		}
	}
	select {
	case <-ctx.Done():
		cancelled.Add(1)
		return nil, ctx.Err()
	case <-time.After(contract.WaitLimit):
		return answer("nobody cancelled"), nil
	}
}

func addAsking(server *mcp.Server) {
	type userIn struct {
		Message string `json:"message" jsonschema:"the question"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: contract.AskUser, Description: "Asks the user to fill in a form."},
		func(_ context.Context, req *mcp.CallToolRequest, in userIn) (*mcp.CallToolResult, any, error) {
			given, ok := req.Params.InputResponses["user"].(*mcp.ElicitResult)
			if !ok {
				return ask("user", &mcp.ElicitParams{Message: in.Message, RequestedSchema: contract.UserSchema}), nil, nil
			}
			return answer(fmt.Sprintf("%s: %v", given.Action, given.Content)), nil, nil
		})

	type modelIn struct {
		Prompt string `json:"prompt" jsonschema:"the prompt"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: contract.AskModel, Description: "Asks the client's model."},
		func(_ context.Context, req *mcp.CallToolRequest, in modelIn) (*mcp.CallToolResult, any, error) {
			given, ok := req.Params.InputResponses["model"].(*mcp.CreateMessageWithToolsResult)
			if !ok {
				message := &mcp.SamplingMessage{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}
				return ask("model", &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{message}, MaxTokens: 100}), nil, nil
			}
			said, ok := given.Content[0].(*mcp.TextContent)
			if !ok {
				return nil, nil, fmt.Errorf("the model answered a %T, not a text", given.Content[0])
			}
			return answer("LLM response: " + said.Text), nil, nil
		})

	tool(server, contract.AskRoots, "Asks for the client's roots.", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		given, ok := req.Params.InputResponses["client_roots"].(*mcp.ListRootsResult)
		if !ok {
			return ask("client_roots", &mcp.ListRootsParams{}), nil
		}
		uris := ""
		for _, root := range given.Roots {
			uris += root.URI + "\n"
		}
		return answer(uris), nil
	})
}

func ask(key string, question mcp.InputRequest) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{key: question}}
}

func addResources(server *mcp.Server) {
	png, err := base64.StdEncoding.DecodeString(contract.PNG)
	if err != nil {
		log.Fatalf("the picture: %v", err)
	}
	add := func(uri, name, mimeType string, content mcp.ResourceContents) {
		content.URI, content.MIMEType = uri, mimeType
		server.AddResource(&mcp.Resource{URI: uri, Name: name, MIMEType: mimeType},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&content}}, nil
			})
	}
	add(contract.TextURI, "static-text", "text/plain", mcp.ResourceContents{Text: contract.TextContent})
	add(contract.BinaryURI, "static-binary", "image/png", mcp.ResourceContents{Blob: png})
	add(contract.WatchedURI, "watched-resource", "text/plain", mcp.ResourceContents{Text: "watched"})
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: contract.DataURI, Name: "data", MIMEType: "application/json"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			uri := req.Params.URI
			content := &mcp.ResourceContents{URI: uri, MIMEType: "application/json", Text: contract.Data(contract.DataID(uri))}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}}, nil
		})
}

func addPrompts(server *mcp.Server) {
	say := func(s string) *mcp.GetPromptResult {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: s}}}}
	}
	server.AddPrompt(&mcp.Prompt{Name: contract.SimplePrompt, Description: "Takes nothing."},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return say("This is a simple prompt for testing."), nil
		})
	args := []*mcp.PromptArgument{{Name: "arg1", Required: true}, {Name: "arg2", Required: true}}
	server.AddPrompt(&mcp.Prompt{Name: contract.ArgsPrompt, Description: "Takes two arguments.", Arguments: args},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			for _, arg := range args {
				if _, ok := req.Params.Arguments[arg.Name]; !ok {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "missing argument " + arg.Name}
				}
			}
			return say(contract.Greeting(req.Params.Arguments["arg1"], req.Params.Arguments["arg2"])), nil
		})
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := contract.Completions(req.Params.Argument.Value)
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}
