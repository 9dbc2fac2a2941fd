// Command mcpgo-server is a server written with mark3labs/mcp-go. It has the features of package
// contract, on stdio or with -http at an address: at /mcp with sessions, at /stateless without, and
// at /sse with HTTP+SSE of 2024-11-05. It speaks both eras: it asks questions by input requests,
// and the SDK asks them live in the legacy era.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/interop/peers/contract"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	address := flag.String("http", "", "serve over HTTP at this address")
	flag.Parse()
	s := server.NewMCPServer("mcpgo-server", "1.0.0",
		server.WithToolCapabilities(true),
		server.WithPromptCapabilities(true),
		server.WithResourceCapabilities(true, true),
		server.WithLogging(),
		server.WithElicitation(),
		server.WithRoots(),
		server.WithCompletions(),
		server.WithPromptCompletionProvider(completer{}),
		server.WithInputSchemaValidation(),
		server.WithPaginationLimit(4), // so that lists have several pages
	)
	s.EnableSampling()
	addTools(s)
	addStates(s)
	addAsking(s)
	addResources(s)
	addPrompts(s)
	go touch(s)
	if *address != "" {
		log.Fatal(http.ListenAndServe(*address, web(s)))
	}
	if err := server.ServeStdio(s, server.WithErrorLogger(log.New(os.Stderr, "", 0))); err != nil {
		log.Printf("serving on stdio: %v", err)
	}
}

func web(s *server.MCPServer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s, server.WithStateful(true)))
	mux.Handle("/stateless", server.NewStreamableHTTPServer(s, server.WithStateLess(true)))
	old := server.NewSSEServer(s)
	mux.Handle("/sse", old)
	mux.Handle("/message", old)
	return mux
}

// touch sends updates of the watched resource, one every contract.WatchPeriod.
func touch(s *server.MCPServer) {
	for range time.Tick(contract.WatchPeriod) {
		s.SendNotificationToAllClients(mcp.MethodNotificationResourceUpdated, map[string]any{"uri": contract.WatchedURI})
	}
}

func addTools(s *server.MCPServer) {
	s.AddTool(mcp.NewTool(contract.SimpleText, mcp.WithDescription("Answers a text.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(contract.SimpleAnswer), nil
		})
	s.AddTool(mcp.NewTool(contract.Failing, mcp.WithDescription("Fails.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultError(contract.FailingAnswer), nil
		})
	s.AddTool(mcp.NewTool(contract.Echo, mcp.WithDescription("Says what it is told."), mcp.WithString("message", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(req.GetString("message", "")), nil
		})
	type sum struct {
		Sum float64 `json:"sum"`
	}
	s.AddTool(mcp.NewTool(contract.Add, mcp.WithDescription("Adds two numbers."),
		mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required()), mcp.WithOutputSchema[sum]()),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			total := req.GetFloat("a", 0) + req.GetFloat("b", 0)
			return mcp.NewToolResultStructured(sum{total}, fmt.Sprint(total)), nil
		})
	s.AddTool(mcp.NewTool(contract.Progress, mcp.WithDescription("Takes a while and says how far it is.")), progress)
	s.AddTool(mcp.NewTool(contract.ToolChange, mcp.WithDescription("Adds a tool.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.AddTool(mcp.NewTool("added_later", mcp.WithDescription("Was added while the server ran.")),
				func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return mcp.NewToolResultText("added"), nil
				})
			return mcp.NewToolResultText("the list has changed"), nil
		})
}

func addStates(s *server.MCPServer) {
	s.AddTool(mcp.NewTool(contract.Logging, mcp.WithDescription("Logs three messages.")), logging)
	s.AddTool(mcp.NewTool(contract.Wait, mcp.WithDescription("Waits until it is cancelled.")), wait)
	s.AddTool(mcp.NewTool(contract.Cancelled, mcp.WithDescription("Counts calls that were cancelled.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(fmt.Sprint(cancelled.Load())), nil
		})
}

func logging(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s := server.ServerFromContext(ctx)
	for _, message := range contract.LogMessages {
		if err := s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, "mcpgo-server", message)); err != nil {
			return nil, err
		}
		time.Sleep(contract.ProgressStep) // the SDK may lose a message that is still queued when the result is sent
	}
	return mcp.NewToolResultText("logged"), nil
}

// cancelled counts the calls of wait that were cancelled.
var cancelled atomic.Int64

func wait(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if meta := req.Params.Meta; meta != nil && meta.ProgressToken != nil {
		params := map[string]any{"progressToken": meta.ProgressToken, "progress": 1.0}
		if err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", params); err != nil {
			return nil, err
		}
	}
	select {
	case <-ctx.Done():
		cancelled.Add(1)
		return nil, ctx.Err()
	case <-time.After(contract.WaitLimit):
		return mcp.NewToolResultText("nobody cancelled"), nil
	}
}

func progress(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for _, done := range []float64{0, 50, 100} {
		if meta := req.Params.Meta; meta != nil && meta.ProgressToken != nil {
			params := map[string]any{"progressToken": meta.ProgressToken, "progress": done, "total": 100.0, "message": "working"}
			if err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", params); err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(contract.ProgressStep):
		}
	}
	return mcp.NewToolResultText("done"), nil
}

func addAsking(s *server.MCPServer) {
	s.AddTool(mcp.NewTool(contract.AskUser, mcp.WithDescription("Asks the user to fill in a form."), mcp.WithString("message", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			given := server.ElicitationResponse(req.Params.InputResponses, "user")
			if given == nil {
				question := mcp.ElicitationParams{Message: req.GetString("message", ""), RequestedSchema: contract.UserSchema}
				return server.NewInputRequestBuilder("").Elicit("user", question).ToolResult(), nil
			}
			return mcp.NewToolResultText(fmt.Sprintf("%s: %v", given.Action, given.Content)), nil
		})
	s.AddTool(mcp.NewTool(contract.AskModel, mcp.WithDescription("Asks the client's model."), mcp.WithString("prompt", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			given := server.SamplingResponse(req.Params.InputResponses, "model")
			if given == nil {
				message := mcp.SamplingMessage{Role: mcp.RoleUser, Content: mcp.NewTextContent(req.GetString("prompt", ""))}
				question := mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{message}, MaxTokens: 100}
				return server.NewInputRequestBuilder("").Sample("model", question).ToolResult(), nil
			}
			return mcp.NewToolResultText("LLM response: " + mcp.GetTextFromContent(given.Content)), nil
		})
	s.AddTool(mcp.NewTool(contract.AskRoots, mcp.WithDescription("Asks for the client's roots.")),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			given := server.RootsResponse(req.Params.InputResponses, "client_roots")
			if given == nil {
				return server.NewInputRequestBuilder("").Roots("client_roots").ToolResult(), nil
			}
			uris := ""
			for _, root := range given.Roots {
				uris += root.URI + "\n"
			}
			return mcp.NewToolResultText(uris), nil
		})
}

func addResources(s *server.MCPServer) {
	add := func(uri, name, mimeType string, content mcp.ResourceContents) {
		s.AddResource(mcp.NewResource(uri, name, mcp.WithMIMEType(mimeType)),
			func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
				return []mcp.ResourceContents{content}, nil
			})
	}
	add(contract.TextURI, "static-text", "text/plain",
		mcp.TextResourceContents{URI: contract.TextURI, MIMEType: "text/plain", Text: contract.TextContent})
	add(contract.BinaryURI, "static-binary", "image/png",
		mcp.BlobResourceContents{URI: contract.BinaryURI, MIMEType: "image/png", Blob: contract.PNG})
	add(contract.WatchedURI, "watched-resource", "text/plain",
		mcp.TextResourceContents{URI: contract.WatchedURI, MIMEType: "text/plain", Text: "watched"})
	s.AddResourceTemplate(mcp.NewResourceTemplate(contract.DataURI, "data", mcp.WithTemplateMIMEType("application/json")),
		func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			uri := req.Params.URI
			content := mcp.TextResourceContents{URI: uri, MIMEType: "application/json", Text: contract.Data(contract.DataID(uri))}
			return []mcp.ResourceContents{content}, nil
		})
}

func addPrompts(s *server.MCPServer) {
	say := func(text string) *mcp.GetPromptResult {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text))})
	}
	s.AddPrompt(mcp.NewPrompt(contract.SimplePrompt, mcp.WithPromptDescription("Takes nothing.")),
		func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return say("This is a simple prompt for testing."), nil
		})
	s.AddPrompt(mcp.NewPrompt(contract.ArgsPrompt, mcp.WithPromptDescription("Takes two arguments."),
		mcp.WithArgument("arg1", mcp.RequiredArgument()), mcp.WithArgument("arg2", mcp.RequiredArgument())),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return say(contract.Greeting(req.Params.Arguments["arg1"], req.Params.Arguments["arg2"])), nil
		})
}

// completer completes the arguments of prompts.
type completer struct{}

func (completer) CompletePromptArgument(_ context.Context, _ string, argument mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	values := contract.Completions(argument.Value)
	return &mcp.Completion{Values: values, Total: len(values)}, nil
}
