// Command client is the client that the official conformance suite runs. It connects to the URL in
// its last argument and runs the scenario that the environment names, with the public interface of
// package client. At its end it prints done, because the suite does not record the exit status of
// its clients.
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

// scenarios maps a scenario to its function. In all other scenarios the client lists the tools, and
// calls test-tool if the server has it.
var scenarios = map[string]func(context.Context, *client.Client) error{
	"initialize":                          listTools,
	"request-metadata":                    listTools,
	"json-schema-ref-no-deref":            listTools,
	"tools_call":                          callTool("add_numbers", map[string]int{"a": 5, "b": 3}),
	"sse-retry":                           callTool("test_reconnection", nil),
	"elicitation-sep1034-client-defaults": callTool("test_client_elicitation_defaults", nil),
	"sep-2322-client-request-state":       callStateTools,
	"http-standard-headers":               useOneOfEach,
	"http-custom-headers":                 makeContextCalls,
	"http-invalid-tool-headers":           callEveryTool,
	"json-schema-2020-12-preservation":    echoSchema,
	"sep-2640-client-no-prefetch":         listSkills,
	"sep-2640-client-verify-digest":       useSkills,
	"sep-2640-client-verify-size":         useSkills,
	"sep-2640-client-verify-frontmatter":  useSkills,
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
	settings, err := authorize(target)
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, target, &client.Options{
		HTTP: settings,
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
	return callTestTool(ctx, c)
}

// olderRevision returns r if it is older than the newest legacy revision, and "" otherwise. With ""
// the client offers the newest revision of each era. The suite's servers accept that also in a run
// for an older revision, so in such a run the client must request r.
func olderRevision(r mcp.Revision) mcp.Revision {
	if r < mcp.LatestLegacyRevision {
		return r
	}
	return ""
}

// acceptForm accepts every form with its defaults, and sets a boolean field confirmed to true.
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

// answerSampling answers in place of a model.
func answerSampling(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		Role: mcp.RoleAssistant, Model: "none", StopReason: "endTurn", Content: mcp.SamplingContent{mcp.Text("Nothing to say.")},
	}, nil
}

// callTool returns a function that lists the tools and calls one.
func callTool(tool string, arguments any) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		if err := listTools(ctx, c); err != nil {
			return err
		}
		_, err := client.Call[string](ctx, c, tool, arguments)
		return err
	}
}

// listTools lists the tools, if the server has tools.
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

func callTestTool(ctx context.Context, c *client.Client) error {
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

func callStateTools(ctx context.Context, c *client.Client) error {
	var failed error
	for _, tool := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
		if _, err := client.Call[string](ctx, c, tool, nil); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// useOneOfEach uses the first tool, resource and prompt.
func useOneOfEach(ctx context.Context, c *client.Client) error {
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

// makeContextCalls makes the calls that the scenario's context lists.
func makeContextCalls(ctx context.Context, c *client.Client) error {
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

func callEveryTool(ctx context.Context, c *client.Client) error {
	all, failed := fetchTools(ctx, c)
	for _, tool := range all {
		_, err := client.Call[mcp.CallToolResult](ctx, c, tool.Name, map[string]string{"region": "us-west1"})
		failed = errors.Join(failed, err)
	}
	return failed
}

// echoSchema sends a tool's schema back unchanged.
func echoSchema(ctx context.Context, c *client.Client) error {
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
	return errors.New("the server has no tool json_schema_2020_12_tool")
}
