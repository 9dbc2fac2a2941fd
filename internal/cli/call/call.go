// Package call is dowel call: it calls a tool with arguments of the command line and shows the
// result.
package call

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/savedcalls"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
	"github.com/spf13/cobra"
)

// Options holds the flags of a call.
type Options struct {
	args      string
	output    string
	unchecked bool
	task      bool
	saved     string
	listSaved bool
}

// NewCommand returns the command call.
func NewCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	var opts Options
	c := conn.Command(&cobra.Command{
		ValidArgsFunction: conn.CompleteWords(connect.ListTools, "name"),

		Use:   "call SERVER.TOOL [KEY=VALUE]…",
		Short: "Call a tool",
		Long: `Call a tool and print its result: text unchanged, structured content as JSON if the result has no text, and a line about
each image or sound. A terminal shows progress. Ctrl-C cancels the call at the server.

The tool's schema says how to read each VALUE: as a number, as true or false, or as text. For a list, repeat the KEY or
write JSON. For an object, write JSON or KEY.MEMBER=VALUE. Arguments that are missing, misspelt or of the wrong type are
reported before the tool is called. --args takes all arguments as JSON: in place, from a @FILE, or from standard input
with @-. Single arguments can be added to them.

Some servers make tasks of long calls. dowel waits for a task. With --task it prints the name of the task instead and ends;
see dowel task. A tool that answers at once makes no task, and its result is printed.

--saved makes a call that was saved in the console: the file ` + savedcalls.FileName + ` of a project has such calls by name, and can be edited
and shared. dowel says first which tool it calls.

` + connect.NamingHelp,
		Example: `  dowel call everything.echo message=hello
  echo '{"message":"hello"}' | dowel call everything.echo --args @-
  dowel call films.transcode file=a.mkv --task
  dowel call get-sum a=19 b=23 -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t connect.Target, rest []string) error {
		return runCall(ctx, conn, t, rest, opts)
	})
	c.Flags().StringVar(&opts.args, "args", "", "the arguments as a `JSON` object, or @FILE, or @- for standard input")
	c.Flags().StringVarP(&opts.output, "output", "o", "", "save images, sounds and other data in this `file`, or the text if there are none; - is stdout")
	c.Flags().BoolVar(&opts.task, "task", false, "do not wait for a task: print its name, for dowel task (needs a server of the running dowel)")
	c.Flags().BoolVar(&opts.unchecked, "unchecked", false, "do not use the tool's schema: send JSON as JSON, and everything else as text")
	c.Flags().StringVar(&opts.saved, "saved", "", "make the call that "+savedcalls.FileName+" in this folder has under a `name`; KEY=VALUE replaces arguments")
	c.Flags().BoolVar(&opts.listSaved, "list-saved", false, "list the saved calls of this folder")
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, words []string) error {
		if opts.listSaved {
			return listSaved(f)
		}
		words, err := opts.expandSaved(f, words)
		if err != nil {
			return err
		}
		return run(cmd, words)
	}
	return c
}

func runCall(ctx context.Context, conn *connect.Connection, t connect.Target, rest []string, opts Options) error {
	if len(rest) == 0 {
		return exit.Usagef("no tool is named: write SERVER.TOOL, or TOOL with --url or a command after --")
	}
	name := rest[0]
	given, err := toolargs.ParseArguments(rest[1:])
	if err != nil {
		return err
	}
	base, err := toolargs.ReadObject(opts.args, conn.Stdin)
	if err != nil {
		return err
	}
	if opts.task && !t.IsRunning() {
		return exit.Usagef("--task needs a server of the running dowel, because the tasks of other servers end with the command: start dowel up first")
	}
	o, err := conn.DialOptions(t)
	if err != nil {
		return err
	}
	if opts.task && o.Answers.Elicit == nil { // dowel task answer answers the questions of the task
		o.Answers.Elicit = refuseQuestion
	}
	return conn.DoWithOptions(ctx, t, o, func(c *client.Client) error {
		tool := mcp.Tool{Name: name}
		if err := t.CheckHeldTool(ctx, c, name); err != nil {
			return err
		}
		if !opts.unchecked {
			if tool, _, err = connect.FindTool(ctx, c, name); err != nil {
				return exit.WithHelp(connect.ExplainMissingTool(ctx, t.Name, name, err), t.CommandLine("tools", ""))
			}
		}
		params := mcp.CallToolParams{Name: name}
		if params.Arguments, err = toolargs.Complete(toolargs.NewSpec(tool.InputSchema), base, given); err != nil {
			return exit.WithHelp(err, t.CommandLine("tools", name))
		}
		if opts.task {
			return startTask(ctx, conn, t, c, &tool, params, opts)
		}
		raw, err := connect.Request(ctx, c, mcp.MethodCallTool, name, params, conn.CallOptions())
		conn.Stderr.SetStatus("")
		if err != nil {
			return err
		}
		return showResult(conn, c, &tool, raw, opts)
	})
}

// showResult writes a tool's result. It returns an error if the tool failed or its structured
// content does not match the tool's output schema.
func showResult(conn *connect.Connection, c *client.Client, tool *mcp.Tool, raw json.RawMessage, opts Options) error {
	var r mcp.CallToolResult
	if err := mcp.Decode(raw, &r); err != nil {
		return connect.Unreadable(c, mcp.MethodCallTool, err)
	}
	if conn.JSON {
		if err := conn.WriteDocument(raw); err != nil {
			return err
		}
	}
	if r.IsError {
		return exit.ToolError{Tool: tool.Name, Text: formatFailure(r.Content)}
	}
	if err := showResultContent(conn, &r, opts); err != nil {
		return err
	}
	return checkOutput(c, tool, r.StructuredContent)
}

// showResultContent writes or saves the content of a result. With --json it only saves: the JSON
// has been written already.
func showResultContent(conn *connect.Connection, r *mcp.CallToolResult, opts Options) error {
	save := display.NewSaver(opts.output, r.Content)
	switch {
	case conn.JSON && save == nil:
		return nil
	case conn.JSON:
		return display.SaveContent(r.Content, save)
	case r.StructuredContent != nil && !hasText(r.Content):
		if err := display.WriteText(conn.Factory, string(factory.IndentJSON(r.StructuredContent)), save); err != nil {
			return err
		}
	}
	return display.WriteContent(conn.Factory, r.Content, save)
}

// hasText reports whether content has a text block.
func hasText(content []mcp.Content) bool {
	for _, c := range content {
		if c.Type == mcp.ContentText {
			return true
		}
	}
	return false
}

// formatFailure returns the text of a failed result.
func formatFailure(content []mcp.Content) string {
	var words []string
	for _, c := range content {
		words = append(words, strings.TrimSpace(c.String()))
	}
	if len(words) == 0 {
		return "the tool failed without a message"
	}
	return strings.Join(words, "\n")
}

// checkOutput validates structured content against the tool's output schema, if it has one that can
// be compiled.
func checkOutput(c *client.Client, tool *mcp.Tool, structured json.RawMessage) error {
	if structured == nil || len(tool.OutputSchema) == 0 || rawjson.IsNull(tool.OutputSchema) {
		return nil
	}
	compiled, err := schema.Compile(tool.OutputSchema)
	if err != nil {
		return nil // a broken schema must not hide a good result
	}
	if err := compiled.Validate(structured); err != nil {
		return &client.CallError{Server: c.Server().Info.Name, Method: mcp.MethodCallTool, Name: tool.Name,
			Err: &client.OutputError{Tool: tool.Name, Err: err}}
	}
	return nil
}
