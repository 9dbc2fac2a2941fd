package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// send stands for a transport.
func send(h mcp.Handler, method, params string) {
	res, err := h.ServeMCP(context.Background(), &mcp.Request{
		Method: method, Params: json.RawMessage(params), Revision: mcp.LatestRevision,
		ClientCapabilities: json.RawMessage(`{"elicitation":{}}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	raw := res.Raw
	if asked, ok := res.Value.(*mcp.InputRequiredResult); ok {
		fmt.Printf("%s: %s\n", res.Type, asked.InputRequests["sure"].Params)
		return
	}
	if raw == nil {
		raw, _ = mcp.Encode(res.Value)
	}
	fmt.Println(string(raw))
}

func Example() {
	type Alert struct {
		Event    string `json:"event"`
		Severity string `json:"severity" enum:"minor,severe"`
	}
	type AlertsIn struct {
		State string `json:"state" doc:"Two-letter US state code, such as CA" minLength:"2" maxLength:"2"`
	}
	s := server.New("weather", "1.0.0", nil)
	server.Tool(s, "get_alerts", "Active weather alerts for a US state.",
		func(ctx context.Context, in AlertsIn) ([]Alert, error) {
			server.Progress(ctx, 1, 2, "asking the weather service")
			return []Alert{{"Flood in " + in.State, "severe"}}, nil
		}, server.ToolOptions{Annotations: mcp.ReadOnly})

	send(s, "tools/call", `{"name":"get_alerts","arguments":{"state":"CA"}}`)
	send(s, "tools/call", `{"name":"get_alerts","arguments":{"state":"California"}}`)
	// Output:
	// {"content":[{"type":"text","text":"[{\"event\":\"Flood in CA\",\"severity\":\"severe\"}]"}],"structuredContent":[{"event":"Flood in CA","severity":"severe"}]}
	// {"content":[{"type":"text","text":"invalid arguments: /state: must be at most 2 characters long (got 10)"}],"isError":true}
}

func ExampleResource() {
	s := server.New("weather", "1.0.0", nil)
	server.Resource(s, "weather://{city}", "Current weather in a city.", func(_ context.Context, v struct {
		City string `uri:"city" enum:"Oslo,Rome"`
	}) (mcp.Content, error) {
		return mcp.Text("Rain in " + v.City + "."), nil
	})
	send(s, "resources/read", `{"uri":"weather://Oslo"}`)
	send(s, "resources/read", `{"uri":"weather://Atlantis"}`)
	send(s, "completion/complete", `{"ref":{"type":"ref/resource","uri":"weather://{city}"},"argument":{"name":"city","value":"o"}}`)
	// Output:
	// {"contents":[{"uri":"weather://Oslo","mimeType":"text/plain","text":"Rain in Oslo."}]}
	// resource not found: weather://Atlantis (-32602)
	// {"completion":{"values":["Oslo","Rome"],"total":2}}
}

func ExamplePrompt() {
	type BriefArgs struct {
		City string `json:"city" doc:"Where"`
		Days int    `json:"days,omitempty"`
	}
	s := server.New("weather", "1.0.0", nil)
	server.Prompt(s, "brief", "Write a weather brief.", func(_ context.Context, in BriefArgs) (string, error) {
		return fmt.Sprintf("Write a weather brief for %s, %d days.", in.City, max(in.Days, 1)), nil
	})
	send(s, "prompts/get", `{"name":"brief","arguments":{"city":"Oslo","days":"3"}}`)
	send(s, "prompts/get", `{"name":"brief"}`)
	// Output:
	// {"description":"Write a weather brief.","messages":[{"role":"user","content":{"type":"text","text":"Write a weather brief for Oslo, 3 days."}}]}
	// missing required argument "city" (-32602)
}

// The handler runs twice: without an answer Ask returns an error that is passed up, with it the answer.
func ExampleAsk() {
	s := server.New("files", "1.0.0", nil)
	server.Tool(s, "delete", "Deletes a file.", func(ctx context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		sure, err := server.Ask[bool](ctx, "sure", "Delete "+in.Name+"?")
		if err != nil {
			return "", err
		}
		if !sure {
			return "kept", nil
		}
		return "deleted " + in.Name, nil
	})
	send(s, "tools/call", `{"name":"delete","arguments":{"name":"a.txt"}}`)
	send(s, "tools/call", `{"name":"delete","arguments":{"name":"a.txt"},"inputResponses":{"sure":{"action":"accept","content":{"value":true}}}}`)
	send(s, "tools/call", `{"name":"delete","arguments":{"name":"a.txt"},"inputResponses":{"sure":{"action":"decline"}}}`)
	// Output:
	// input_required: {"mode":"form","message":"Delete a.txt?","requestedSchema":{"type":"object","properties":{"value":{"type":"boolean"}},"required":["value"]}}
	// {"content":[{"type":"text","text":"deleted a.txt"}]}
	// {"content":[{"type":"text","text":"sure: the user declined"}],"isError":true}
}

func ExampleServer_Use() {
	s := server.New("files", "1.0.0", nil)
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if strings.HasPrefix(req.Method, "tools/") && req.Principal.ID == "" {
				return nil, mcp.Errorf(-1, "who are you?")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	send(s, "tools/list", `{}`)
	// Output:
	// who are you? (-1)
}
