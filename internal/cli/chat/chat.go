// Package chat is dowel chat: a conversation with a model at the terminal or over a pipe. The user
// approves calls, answers servers' questions, uses prompts and files, and resumes conversations of
// before.
package chat

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/spf13/cobra"
)

// Options are those of a conversation.
type Options struct {
	agentcmd.Flags
	approve string
	steps   int
	system  string

	resume   string // an ID, or latest
	sessions bool
	noSave   bool
}

// latestSession is what --resume alone says.
const latestSession = "latest"

const chatHelp = `Talk with a model that has your servers' tools. What you type goes to the model; what it answers appears as it is written, and each
tool that it calls is shown with its arguments, its progress, and what it took.

` + modelregistry.Help + `

The servers are all of your configuration, those of the running dowel if there is one; or those of --server, of --url, or of a
command behind --. The prompt does not wait for them: who comes late is told to the model then.

A tool that is not read-only, by its server's own word, is asked about before it runs:
  y          once
  s          this tool, for this session
  server, S  all of the server's tools, for this session
  a          this tool always: dowel keeps it in your state, never in a project
  e          change the arguments first, in $VISUAL or $EDITOR where one of them is set
  n          no; what you say why is read by the model
  ?          explains
--approve and /approve choose another way: read-only refuses instead of asking, also what was allowed for this session; all asks
about nothing, and none runs nothing.

While you type:
  /help                      what else can be said to dowel instead of the model; Tab completes it
  /SERVER.PROMPT KEY=VALUE   a prompt of a server; it asks for what is missing
  //text                     says text that begins with /
  @path                      adds a file: text, image or sound; @"with spaces" in quotes
  \ at the end of a line     goes on with the next one; what is pasted stays together
  Ctrl-C                     stops the reply or call that is under way, and keeps what was said; twice ends dowel
  Ctrl-D                     ends dowel

Each conversation is kept, as it goes, in a file that only you can read; --sessions lists them, --resume goes on with the last one
of this folder, --resume=ID with any, and --no-save keeps nothing.

Without a terminal each line of standard input is said, the answers go to standard output and all else to standard error, and
what would have to be asked is refused, but for what --answer says: key=value answers whoever asks for that key, SERVER.key=value
that server alone, before the other. For one task, with its result as JSON or exit code, there is dowel run.`

func NewCommand(f *factory.Factory) *cobra.Command {
	var opts Options
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
			return runChat(cmd.Context(), f, &opts)
		},
	}
	opts.Flags.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.approve, "approve", string(agent.ModeAsk), "which tools run (`MODE`): ask about those that are not read-only, read-only, all, none")
	flags.IntVar(&opts.steps, "max-steps", 0, fmt.Sprintf("how many replies the model may take for an answer (default %d)", agent.DefaultMaxSteps))
	flags.StringVar(&opts.system, "system", "", "what the model is told before everything else (`text`, or @file)")
	flags.StringVar(&opts.resume, "resume", "", "go on with the last conversation of this folder, or with that of an `ID` (--resume=ID)")
	flags.Lookup("resume").NoOptDefVal = latestSession
	flags.BoolVar(&opts.sessions, "sessions", false, "list the conversations that were kept")
	flags.BoolVar(&opts.noSave, "no-save", false, "do not keep this conversation")
	return cmd
}

// checkFlags finds what cannot be used. The word behind --resume is its ID, although flags whose value may be left out take none.
func (opts *Options) checkFlags(f *factory.Factory, cmd *cobra.Command, words []string) error {
	switch {
	case len(words) == 1 && opts.resume == latestSession:
		opts.resume = words[0]
	case len(words) == 0:
	case cmd.ArgsLenAtDash() < 0 && slices.Contains(opts.Directory().Known(), words[0]):
		return exit.Usagef("%q is too much: a server is named with --server %s", words[0], words[0])
	default:
		return exit.Usagef("%q is too much: what is to be said is typed once dowel chat runs; dowel run takes it as a word", words[0])
	}
	if _, err := parseMode(opts.approve); err != nil {
		return exit.Usagef("--approve %w", err)
	}
	if opts.steps < 0 {
		return exit.Usagef("--max-steps %d: write a number above 0", opts.steps)
	}
	if f.JSON && !opts.sessions {
		return exit.Usagef("dowel chat is for people, and has no --json; dowel run --json streams what happens")
	}
	return nil
}

var modes = []string{string(agent.ModeAsk), string(agent.ModeReadOnly), string(agent.ModeAll), string(agent.ModeNone)}

func parseMode(word string) (agent.Mode, error) {
	if !slices.Contains(modes, word) {
		return "", fmt.Errorf("%s: there are %s%s", word, strings.Join(modes, ", "), suggest.ForFlag(word, modes))
	}
	return agent.Mode(word), nil
}

// runChat holds a conversation.
func runChat(ctx context.Context, f *factory.Factory, opts *Options) error {
	c, err := newConversation(ctx, f, opts)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.startRuntime(); err != nil {
		return err
	}
	return c.runLoop()
}

// sessionsDir is where conversations are kept; empty where there is no place.
func sessionsDir() string {
	if dir := factory.StateDir(); dir != "" {
		return dir + string(os.PathSeparator) + "sessions"
	}
	return ""
}

// findSession is what --resume means.
func findSession(word, here string) (session.Summary, error) {
	if word != latestSession {
		s, err := session.Find(sessionsDir(), word)
		if err != nil {
			return s, exit.UsageError{Err: err, See: "dowel chat --sessions"}
		}
		return s, nil
	}
	s, ok, err := session.Latest(sessionsDir(), here)
	if err == nil && !ok {
		err = exit.UsageError{Err: fmt.Errorf("no conversation was kept in %s", here), See: "dowel chat --sessions"}
	}
	return s, err
}
