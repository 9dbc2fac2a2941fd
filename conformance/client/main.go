// Command client is the client that the official conformance suite runs. It connects to the URL in
// its last argument and runs the scenario that the environment names, with package client as any
// user would. It prints a line when it is done, because the suite does not record how its clients
// end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// scenarios maps a scenario to its function. All others list the tools, and call test-tool if the
// server has it.
var scenarios = map[string]func(context.Context, *client.Client) error{
	"initialize":                          listTools,
	"request-metadata":                    listTools,
	"json-schema-ref-no-deref":            listTools,
	"tools_call":                          callTool("add_numbers", map[string]int{"a": 5, "b": 3}),
	"sse-retry":                           callTool("test_reconnection", nil),
	"elicitation-sep1034-client-defaults": callTool("test_client_elicitation_defaults", nil),
	"sep-2322-client-request-state":       requestState,
	"http-standard-headers":               oneOfEach,
	"http-custom-headers":                 callsOfContext,
	"http-invalid-tool-headers":           everyTool,
	"json-schema-2020-12-preservation":    schemaEcho,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runScenario(ctx, os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func runScenario(ctx context.Context, target string) error {
	if u, err := url.Parse(target); err != nil || u.Host == "" || len(os.Args) < 2 {
		return errors.New("usage: client URL")
	}
	c, err := client.Dial(ctx, target, &client.Options{
		Info: mcp.Implementation{Name: "dowel-conformance-client", Version: "1.0.0"},
		Answers: client.Answers{
			Elicit: acceptForm,
			Roots:  client.FixedRoots(mcp.Root{URI: "file:///conformance", Name: "conformance"}),
			Sample: answerSampling,
		},

		Wire: client.Wire{Revision: olderRevision(mcp.Revision(os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION")))},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if do := scenarios[os.Getenv("MCP_CONFORMANCE_SCENARIO")]; do != nil {
		return do(ctx, c)
	}
	return testTool(ctx, c)
}

// olderRevision returns the revision to insist on, or "" for the newest revision of each era, which
// the client has to find itself. The suite's servers agree to the newest revision, so older ones
// must be requested.
func olderRevision(r mcp.Revision) mcp.Revision {
	if r < mcp.LatestLegacyRevision {
		return r
	}
	return ""
}

// acceptForm answers every question with its defaults, and a confirmation with yes.
func acceptForm(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
	var form struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(q.RequestedSchema, &form); err != nil {
		return nil, err
	}
	content := map[string]any{}
	if form.Properties["confirmed"].Type == "boolean" {
		content["confirmed"] = true
	}
	raw, err := json.Marshal(content)
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: raw}, err
}

// answerSampling answers for a model.
func answerSampling(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		Role: mcp.RoleAssistant, Model: "none", StopReason: "endTurn", Content: mcp.SamplingContent{mcp.Text("Nothing to say.")},
	}, nil
}

func callTool(tool string, arguments any) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		if err := listTools(ctx, c); err != nil {
			return err
		}
		_, err := client.Call[string](ctx, c, tool, arguments)
		return err
	}
}

// listTools lists the tools of a server that has any.
func listTools(ctx context.Context, c *client.Client) error {
	_, err := fetchTools(ctx, c)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

func fetchTools(ctx context.Context, c *client.Client) (all []mcp.Tool, err error) {
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, tool)
	}
	return all, nil
}

func testTool(ctx context.Context, c *client.Client) error {
	all, err := fetchTools(ctx, c)
	if err != nil {
		return err
	}
	for _, tool := range all {
		if tool.Name == "test-tool" {
			_, err = client.Call[mcp.CallToolResult](ctx, c, tool.Name, nil)
		}
	}
	return err
}

func requestState(ctx context.Context, c *client.Client) error {
	var failed error
	for _, tool := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
		if _, err := client.Call[string](ctx, c, tool, nil); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// oneOfEach uses the first tool, resource and prompt.
func oneOfEach(ctx context.Context, c *client.Client) error {
	var failed error
	use := func(err error) { failed = errors.Join(failed, err) }
	for tool, err := range c.Tools(ctx) {
		if err == nil {
			_, err = client.Call[mcp.CallToolResult](ctx, c, tool.Name, nil)
		}
		use(err)
		break
	}
	for resource, err := range c.Resources(ctx) {
		if err == nil {
			_, err = c.ReadResource(ctx, resource.URI)
		}
		use(err)
		break
	}
	for prompt, err := range c.Prompts(ctx) {
		if err == nil {
			_, err = c.GetPrompt(ctx, prompt.Name, nil)
		}
		use(err)
		break
	}
	return failed
}

// callsOfContext makes the calls that the scenario's context lists.
func callsOfContext(ctx context.Context, c *client.Client) error {
	var given struct {
		ToolCalls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given); err != nil {
		return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	failed := listTools(ctx, c)
	for _, call := range given.ToolCalls {
		_, err := client.Call[mcp.CallToolResult](ctx, c, call.Name, call.Arguments)
		failed = errors.Join(failed, err)
	}
	return failed
}

func everyTool(ctx context.Context, c *client.Client) error {
	all, failed := fetchTools(ctx, c)
	for _, tool := range all {
		_, err := client.Call[mcp.CallToolResult](ctx, c, tool.Name, map[string]string{"region": "us-west1"})
		failed = errors.Join(failed, err)
	}
	return failed
}

// schemaEcho sends a tool's schema back as it was received.
func schemaEcho(ctx context.Context, c *client.Client) error {
	all, err := fetchTools(ctx, c)
	if err != nil {
		return err
	}
	for _, tool := range all {
		if tool.Name == "json_schema_2020_12_tool" {
			_, err := client.Call[mcp.CallToolResult](ctx, c, "json_schema_echo", map[string]json.RawMessage{"schema": tool.InputSchema})
			return err
		}
	}
	return errors.New("there is no json_schema_2020_12_tool")
}
