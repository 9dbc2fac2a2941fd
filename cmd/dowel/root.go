package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// app is one run of dowel.
type app struct {
	stdin          io.Reader
	stdout, stderr *screen

	json    bool
	verbose bool

	began bool // the command line was understood
}

// run runs dowel with the given words and streams, and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	a := &app{stdin: stdin, stderr: newScreen(stderr, func() {})}
	a.stdout = newScreen(stdout, func() { gone(errReaderGone) })
	ctx, stop := interruptible(ctx, a.notice)
	defer stop()
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	finish(root)
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !a.began {
		err = usageError{err: err}
	}
	if unwritten := a.stdout.err(); err == nil && unwritten != nil {
		err = fmt.Errorf("the output could not be written: %w", unwritten)
	}
	a.json = a.json || err != nil && !a.began && slices.Contains(args, "--json") // the flags were not read
	a.report(command, err)
	return exitCode(err)
}

const about = `dowel talks to servers of the Model Context Protocol (MCP), of every revision.

` + naming + `

--json gives what the server sent, --wire shows how it came about.
Exit codes: 0 ok, 1 the tool failed, 2 usage, 3 no connection, 4 protocol error,
124 timeout, 130 interrupted; see dowel help exit-codes.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "dowel",
		Short: "The Model Context Protocol on the command line",
		Long:  about,
		Example: `  dowel tools everything
  dowel call everything.echo message=hello
  dowel call get-sum a=19 b=23 -- npx -y @modelcontextprotocol/server-everything
  dowel discover everything --wire`,
		Version:       built().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("dowel {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write JSON: one document, or a line for each event")
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "also show progress, the server's stderr and what the connection does")
	const own, look, use, model, offer = "run", "look", "use", "model", "serve"
	root.AddGroup(&cobra.Group{ID: own, Title: "Your servers:"}, &cobra.Group{ID: look, Title: "What a server offers:"}, &cobra.Group{ID: use, Title: "Using it:"},
		&cobra.Group{ID: model, Title: "Working with a model:"}, &cobra.Group{ID: offer, Title: "Serving:"})
	for group, commands := range map[string][]*cobra.Command{
		own:   {a.upCommand(), a.statusCommand(), a.serversCommand(), a.trustCommand(), a.doctorCommand(), a.configCommand(), a.importCommand(), a.exportCommand()},
		look:  {discoverCommand(a), toolsCommand(a), resourcesCommand(a), promptsCommand(a)},
		use:   {callCommand(a), readCommand(a), promptCommand(a), completeCommand(a), watchCommand(a)},
		model: {a.chatCommand(), a.runCommand(), a.modelsCommand()},
		offer: {a.serveCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(exitCodesTopic(), a.versionCommand())
	return root
}

// finish adds the commands that are cobra's, and makes all say in dowel's words what cannot be used. It is for a tree that has its
// streams.
func finish(root *cobra.Command) {
	// A group of commands is not told to be used alone, although that shows its help.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	explain(root)
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = knownTopic
		}
	}
}

// command makes a subcommand that talks to a server.
func (a *connection) command(c *cobra.Command, do func(ctx context.Context, t target, rest []string) error) *cobra.Command {
	a.register(c)
	c.Args = cobra.ArbitraryArgs
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = a.completeWords(listing{}, "")
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a.began = true
		t, rest, err := a.aim(cmd, args)
		if err != nil {
			return err
		}
		return do(cmd.Context(), t, rest)
	}
	return c
}

// report says what went wrong, to what, and what to do.
func (a *app) report(cmd *cobra.Command, err error) {
	code := exitCode(err)
	if _, ended := err.(*interruption); ended || code == exitOK {
		return // what has no end of its own was ended, or all went well
	}
	a.stderr.show("")
	advice := advice(err)
	var usage usageError
	switch {
	case !errors.As(err, &usage):
	case usage.see != "":
		advice = "see " + usage.see
	case cmd != nil:
		advice = "see " + cmd.CommandPath() + " --help"
	}
	if a.json {
		encodeLine(a.stderr, map[string]any{"error": errorObject(err, code, advice)})
		return
	}
	text := a.stderr.clean(err.Error())
	fmt.Fprintf(a.stderr, "%s %s\n", a.stderr.red("dowel:"), strings.ReplaceAll(text, "\n", "\n  "))
	if advice != "" {
		fmt.Fprintf(a.stderr, "  %s\n", advice)
	}
}

// notice says something on a terminal; programs have no use for it.
func (a *app) notice(text string) {
	if a.stderr.isTerminal() {
		fmt.Fprintf(a.stderr, "\n%s\n", a.stderr.dim(text))
	}
}

// warn says what the user should know although the command goes on.
func (a *app) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if a.json {
		encodeLine(a.stderr, map[string]any{"warning": text})
		return
	}
	fmt.Fprintf(a.stderr, "%s %s\n", a.stderr.yellow("dowel: warning:"), a.stderr.clean(text))
}
