// Package cli is the command line of dowel. [Run] builds the tree of commands, runs the command
// that the arguments name, reports its error and returns the exit code.
//
// Each command, or group of commands that shares types, is a package below this one:
//
//	up down service status console   the running dowel
//	search servers login trust doctor  the user's servers
//	configcmd importcmd exportcmd    their configuration
//	discover tools resources prompts what a server offers; resources has dowel read, too
//	call task prompts watch          using it
//	chat run models                  working with a model
//	serve                            built-in servers
//
// A command package has NewCommand(f), which returns the [cobra.Command] with its flags and help, a
// type Options for the flags if they are more than a few, and a function run… that does the work
// with a context, the factory and the options. It sets f.Parsed first in RunE: errors before that
// are usage errors. A test calls run… with a factory that has buffers as streams; it needs no
// process. A new command is one such package, one line in newRoot, and one in internal/layers.
//
// Commands do not import each other. They share these packages, the higher ones first:
//
//	agentcmd        the agent of run and chat: flags, servers, approvals, instructions
//	agentview       shows the events of an agent
//	modelregistry   the models of the configuration, the flags and the environment
//	approval        names of tools that need no approval
//	toolname        names of tools on the wire and for people
//	attach          files that go along with a message to a model
//	published       servers of the registry, bundles and install links
//	editing         changes of configuration files
//	consent         yes-or-no questions, such as the trust in a project's servers
//	connect         finds the server that a command line names, connects to it, reads its lists
//	tasklist        the tasks that the user has started
//	elicit          puts a server's questions to the user
//	display         tables and entries: servers, tools, prompts, content
//	toolargs        arguments of tools: words of the command line to JSON, by the tool's schema
//	factory         streams, JSON output, warnings, paths of the configuration, the daemon
//	exit            exit codes, and the errors that choose them
//
// Tests of the whole program are in this package: they run it in the process of the test or as a
// child of it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/call"
	"github.com/dowel-mcp/dowel/internal/cli/chat"
	"github.com/dowel-mcp/dowel/internal/cli/configcmd"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/console"
	"github.com/dowel-mcp/dowel/internal/cli/discover"
	"github.com/dowel-mcp/dowel/internal/cli/doctor"
	"github.com/dowel-mcp/dowel/internal/cli/down"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/exportcmd"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/importcmd"
	"github.com/dowel-mcp/dowel/internal/cli/login"
	"github.com/dowel-mcp/dowel/internal/cli/models"
	"github.com/dowel-mcp/dowel/internal/cli/prompts"
	"github.com/dowel-mcp/dowel/internal/cli/resources"
	"github.com/dowel-mcp/dowel/internal/cli/run"
	"github.com/dowel-mcp/dowel/internal/cli/search"
	"github.com/dowel-mcp/dowel/internal/cli/serve"
	"github.com/dowel-mcp/dowel/internal/cli/servers"
	"github.com/dowel-mcp/dowel/internal/cli/service"
	"github.com/dowel-mcp/dowel/internal/cli/status"
	"github.com/dowel-mcp/dowel/internal/cli/task"
	"github.com/dowel-mcp/dowel/internal/cli/tools"
	"github.com/dowel-mcp/dowel/internal/cli/trust"
	"github.com/dowel-mcp/dowel/internal/cli/up"
	"github.com/dowel-mcp/dowel/internal/cli/watch"
	"github.com/dowel-mcp/dowel/internal/cli/wire"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// Run runs dowel with the given arguments and streams, and returns its exit code. args does not
// include the name of the program. If ctx ends, the command is cancelled.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &factory.Factory{Stdin: stdin, Stderr: term.NewScreen(stderr, func() {})}
	f.Stdout = term.NewScreen(stdout, func() { cancel(exit.ErrReaderGone) })
	ctx, stop := exit.WithSignals(ctx, f.Notice)
	defer stop()
	root := newRoot(f)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(f.Stdout)
	root.SetErr(f.Stderr)
	addHelp(root)
	wrapHelp(root, f.Stdout)
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !f.Parsed {
		err = exit.UsageError{Err: err}
	}
	if writeErr := f.Stdout.Err(); err == nil && writeErr != nil {
		err = fmt.Errorf("the output could not be written: %w", writeErr)
	}
	f.JSON = f.JSON || err != nil && !f.Parsed && slices.Contains(args, "--json") // the flags were not read
	reportError(f, command, err)
	if process.IsRollback(err) {
		f.Notice("the interrupted install is being undone, which takes up to 10 s; Ctrl-C leaves that to the background")
		process.AwaitEnd(err)
	}
	return exit.Code(err)
}

// CommandTree returns the tree of all commands, for generators of documentation. Use [Run] to run a
// command.
func CommandTree() *cobra.Command {
	f := &factory.Factory{Stdin: strings.NewReader(""), Stderr: term.NewScreen(io.Discard, func() {})}
	f.Stdout = f.Stderr
	root := newRoot(f)
	addHelp(root)
	return root
}

const rootHelp = `dowel talks to servers of the Model Context Protocol (MCP), of every revision.

` + connect.NamingHelp + `

--json prints the data that the server sent, --wire shows all messages on the wire.
Exit codes: 0 ok, 1 the tool failed, 2 usage, 3 no connection, 4 protocol error,
124 timeout, 130 interrupted; see dowel help exit-codes.`

// newRoot returns the root command with all commands below it.
func newRoot(f *factory.Factory) *cobra.Command {
	root := &cobra.Command{
		Use:   "dowel",
		Short: "The Model Context Protocol on the command line",
		Long:  rootHelp,
		Example: `  dowel tools everything
  dowel call everything.echo message=hello
  dowel call get-sum a=19 b=23 -- npx -y @modelcontextprotocol/server-everything
  dowel discover everything --wire`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(explainFlagError)
	root.PersistentFlags().BoolVar(&f.JSON, "json", false, "write JSON: one document, or a line for each event")
	root.PersistentFlags().CountVarP(&f.Verbosity, "verbose", "v", "``also show progress, the server's stderr and events of the connection")
	const own, look, use, model, offer = "run", "look", "use", "model", "serve"
	root.AddGroup(&cobra.Group{ID: own, Title: "Your servers:"}, &cobra.Group{ID: look, Title: "What a server offers:"}, &cobra.Group{ID: use, Title: "Using it:"},
		&cobra.Group{ID: model, Title: "Working with a model:"}, &cobra.Group{ID: offer, Title: "Serving:"})
	for group, commands := range map[string][]*cobra.Command{
		own:   {up.NewCommand(f), down.NewCommand(f), service.NewCommand(f), status.NewCommand(f), console.NewCommand(f), search.NewCommand(f), servers.NewAddCommand(f), servers.NewCommand(f), login.NewLoginCommand(f), login.NewLogoutCommand(f), login.NewAuthCommand(f), trust.NewCommand(f), wire.NewCommand(f), doctor.NewCommand(f), configcmd.NewCommand(f), importcmd.NewCommand(f), exportcmd.NewCommand(f)},
		look:  {discover.NewCommand(f), tools.NewCommand(f), resources.NewCommand(f), prompts.NewCommand(f)},
		use:   {call.NewCommand(f), task.NewCommand(f), resources.NewReadCommand(f), prompts.NewPromptCommand(f), prompts.NewCompleteCommand(f), watch.NewCommand(f)},
		model: {chat.NewCommand(f, chat.Programs{Doctor: doctor.NewCommand, Login: login.NewLoginCommand}), run.NewCommand(f), models.NewCommand(f)},
		offer: {serve.NewCommand(f)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(newExitCodesTopic(), newVersionCommand(f))
	return root
}

// addHelp adds cobra's commands help and completion to the tree, and replaces cobra's usage errors
// by clearer ones. The streams of root must be set.
func addHelp(root *cobra.Command) {
	shortenUsage(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	explainUsage(root)
	addVersionFlag(root)
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = checkHelpTopic
		}
	}
}

// reportError writes the error of a command to stderr, with advice. It writes nothing if the user
// interrupted a command that runs until it is interrupted.
func reportError(f *factory.Factory, cmd *cobra.Command, err error) {
	code := exit.Code(err)
	if _, isInterrupted := err.(*exit.Interruption); isInterrupted || code == exit.OK {
		return // success, or the normal end of a command such as up
	}
	f.Stderr.SetStatus("")
	advice := exit.Advice(err)
	var usage exit.UsageError
	switch {
	case !errors.As(err, &usage):
	case usage.See != "":
		advice = "see " + usage.See
	case cmd != nil:
		advice = "see " + cmd.CommandPath() + " --help"
	}
	if f.JSON {
		factory.WriteJSONLine(f.Stderr, map[string]any{"error": exit.Object(err, code, advice)})
		return
	}
	text := f.Stderr.Clean(secretmask.Text(err.Error()))
	text = f.Stderr.Red("dowel:") + " " + strings.ReplaceAll(text, "\n", "\n  ")
	if advice != "" {
		text += "\n  " + advice
	}
	fmt.Fprintln(f.Stderr, f.Stderr.Wrapped(text))
}
