// Package chat implements dowel chat, a conversation with a model at the terminal or over a pipe.
// The user approves calls, answers the servers' questions, uses prompts and files, and resumes
// earlier conversations.
//
// One goroutine reads the user's input and handles it (runLoop). A second one starts the agent
// meanwhile (startRuntime), so the prompt does not wait for servers. Ctrl-C goes through an
// interruptHandler, which stops either the current work or the program.
package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/spf13/cobra"
)

// Options holds the flags of dowel chat. The zero value is not usable: [NewCommand] sets the
// defaults.
type Options struct {
	agentcmd.Flags
	approve string
	steps   int
	system  string

	resume   string // a session ID, latestSession, or "" for a new conversation
	sessions bool
	trace    string // a session ID, latestSession, or "" for none
	request  int    // with trace: the number of a request, or 0
	prune    string // an age
	yes      bool   // with prune
	noSave   bool
	plain    bool
	screen   bool

	programs Programs
}

// latestSession is the value of --resume without an ID.
const latestSession = "latest"

const chatHelp = `Talk with a model that has your servers' tools. What you type goes to the model. Its answer appears as it is written,
and each tool call is shown with its arguments, progress and duration.

` + modelregistry.Help + `

dowel chat uses all servers of your configuration, through the running dowel if it runs (dowel up). --server, --url, or a command
after -- choose other servers. The prompt does not wait for servers: the model learns of a late server when it is ready.

dowel asks you before it runs a tool that its server does not declare read-only. The answers:
  y          once
  s          this tool, for this session
  server, S  all of the server's tools, for this session
  a          this tool always: dowel keeps that in your state, never in a project
  e          change the arguments first, in $VISUAL or $EDITOR if one of them is set
  n          no; the model reads the reason that you give
  ?          explain the answers
--approve and /approve change the mode: read-only refuses instead of asking, even tools allowed for this session; all runs
every tool without a question; none runs no tool.

While you type:
  /help                      list the commands: tools, servers, models, saved conversations, undo and more; Tab completes them
  /SERVER.PROMPT KEY=VALUE   use a prompt of a server; dowel asks for missing arguments
  //text                     send text that begins with /
  @path                      add a file: text, image or sound; quote spaces: @"my file"
  @SERVER:URI                add a resource of a server; dowel tells the model when it changes
  \ at the end of a line     continue on the next line; pasted lines stay together
  Ctrl-C                     stop the current reply or call, and keep the conversation; twice ends dowel
  Ctrl-D                     end dowel

The conversation has the whole terminal. Write on while the model works: messages wait in a queue. The keys:
  Enter                      send; Alt-Enter, Ctrl-J, or \ and Enter begin a new line
  Up, Down, Ctrl-R           earlier messages of all sessions; Ctrl-R searches them
  Tab                        complete a command, file or resource
  PgUp, PgDn, Ctrl-Home/End  scroll
  Ctrl-O                     show calls and thoughts in full, or folded
  F3                         show the latest image of a result on the whole screen, where the terminal can
  F12                        show the messages between dowel and the server in the current call
  Ctrl-G                     write the message in $VISUAL or $EDITOR
  Esc                        stop the current reply or call; Ctrl-C does, too, and twice ends dowel
  Esc Esc                    when nothing runs: take back the last message and edit it
  Ctrl-Z                     suspend dowel; fg continues it
--plain writes line by line instead and uses nothing but the keys of the first list, and so does dowel chat on a terminal without
cursor movement (TERM=dumb), and if the variable ACCESSIBLE is set, as it is for screen readers.

dowel saves each conversation as it proceeds, in a file that only you can read. --sessions lists them, --resume continues the last
one of this folder, --resume=ID continues any, --trace shows each step with its calls and times, --trace --request 2 exactly what
the model got with its second request, --prune deletes old ones, and --no-save saves nothing.

Without a terminal, each line of standard input is a message. Answers go to standard output, everything else to standard error.
Questions are refused unless --answer answers them: key=value answers every server that asks for that key, SERVER.key=value
answers one server and takes precedence. For one task with a result as JSON or an exit code, use dowel run.`

// NewCommand returns the command dowel chat. f must not be nil.
func NewCommand(f *factory.Factory, p Programs) *cobra.Command {
	opts := Options{programs: p}
	cmd := &cobra.Command{
		Use:   "chat [-- COMMAND…]",
		Short: "Talk with a model that has your servers' tools",
		Long:  chatHelp,
		Example: `  dowel chat --model claude-sonnet-4-5
  dowel chat --model qwen3 --base-url http://localhost:11434/v1 --server files --server everything
  dowel chat --resume
  echo 'What is 19 plus 23?' | dowel chat --server everything --approve all`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			words, err := opts.TakeCommand(cmd, args)
			if err == nil {
				err = opts.checkFlags(f, cmd, words)
			}
			if err != nil {
				return err
			}
			f.Parsed = true
			if opts.sessions {
				return listSessions(f)
			}
			if opts.trace != "" {
				return showTrace(f, opts.trace, opts.request)
			}
			if opts.prune != "" {
				return pruneSessions(cmd.Context(), f, opts.prune, opts.yes)
			}
			return runChat(cmd.Context(), f, &opts)
		},
	}
	opts.Flags.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.approve, "approve", string(agent.ModeAsk), "which tools run (`MODE`): ask about those that are not read-only, read-only, all, none")
	flags.IntVar(&opts.steps, "max-steps", 0, fmt.Sprintf("how many replies the model may use for one answer (default %d)", agent.DefaultMaxSteps))
	flags.StringVar(&opts.system, "system", "", "the system prompt, instead of dowel's (`text`, or @file)")
	flags.StringVar(&opts.resume, "resume", "", "continue the last conversation of this folder, or the conversation `ID` (--resume=ID)")
	flags.Lookup("resume").NoOptDefVal = latestSession
	flags.BoolVar(&opts.sessions, "sessions", false, "list the saved conversations")
	flags.StringVar(&opts.trace, "trace", "", "show each step of the last conversation of this folder, or of the conversation `ID` (--trace=ID)")
	flags.Lookup("trace").NoOptDefVal = latestSession
	flags.IntVar(&opts.request, "request", 0, "with --trace, show the request to the model with this `number` instead: instructions, tools and messages")
	flags.BoolVar(&opts.plain, "plain", false, "write line by line, for screen readers and logs, instead of using the whole terminal")
	flags.BoolVar(&opts.screen, "screen", true, "") // for scripts from the time when it was not the default
	_ = flags.MarkHidden("screen")                  // fails for an unknown flag only
	flags.StringVar(&opts.prune, "prune", "", "delete the saved conversations that have not changed for an `AGE`, such as 30d, after a question")
	flags.BoolVar(&opts.yes, "yes", false, "with --prune, delete without a question")
	cmd.MarkFlagsMutuallyExclusive("sessions", "prune", "resume", "trace")
	flags.BoolVar(&opts.noSave, "no-save", false, "do not save this conversation")
	return cmd
}

// checkFlags validates the flags and words. One word after a bare --resume is the session's ID:
// the flag parser takes no separate value for a flag with an optional value.
func (opts *Options) checkFlags(f *factory.Factory, cmd *cobra.Command, words []string) error {
	switch {
	case len(words) == 1 && opts.resume == latestSession:
		opts.resume = words[0]
	case len(words) == 1 && opts.trace == latestSession:
		opts.trace = words[0]
	case len(words) == 0:
	case cmd.ArgsLenAtDash() < 0 && slices.Contains(opts.Directory().Known(), words[0]):
		return exit.Usagef("unexpected word %q: name a server with --server %s", words[0], words[0])
	default:
		return exit.Usagef("unexpected word %q: type messages after dowel chat starts, or use dowel run", words[0])
	}
	if _, err := parseMode(opts.approve); err != nil {
		return exit.Usagef("--approve %w", err)
	}
	if opts.steps < 0 {
		return exit.Usagef("--max-steps %d: write a number above 0", opts.steps)
	}
	if opts.yes && opts.prune == "" {
		return exit.Usagef("--yes is for --prune")
	}
	if opts.request != 0 && opts.trace == "" || opts.request < 0 {
		return exit.Usagef("--request wants --trace, and a number from 1")
	}
	if f.JSON && !opts.sessions && opts.trace == "" {
		return exit.Usagef("dowel chat has no --json: use dowel run --json")
	}
	return nil
}

var modes = []string{string(agent.ModeAsk), string(agent.ModeReadOnly), string(agent.ModeAll), string(agent.ModeNone)}

// parseMode returns the approval mode with the given name.
func parseMode(word string) (agent.Mode, error) {
	if !slices.Contains(modes, word) {
		return "", fmt.Errorf("%s: want %s%s", word, strings.Join(modes, ", "), suggest.ForFlag(word, modes))
	}
	return agent.Mode(word), nil
}

// runChat runs a conversation until the user ends it.
func runChat(ctx context.Context, f *factory.Factory, opts *Options) error {
	c, err := newConversation(ctx, f, opts)
	if err != nil {
		return err
	}
	defer c.releaseParts()
	if err := c.startRuntime(); err != nil {
		return err
	}
	if c.screen != nil {
		return c.screen.runConversation(c)
	}
	return c.runLoop()
}
