// Package run implements dowel run: a model carries out one task with the tools of the user's
// servers. On a terminal the user is asked about calls that need an approval. A viewer shows the
// events of the run, as lines for a person or as JSON for a program. taskProgress follows the same
// events and decides the exit code.
package run

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/elicit"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// Options holds the flags of dowel run. The zero value is not usable: [NewCommand] sets the
// defaults.
type Options struct {
	agentcmd.Flags
	files     []string
	system    string
	maxSteps  int
	maxTokens int
	maxCost   float64 // US dollars
	maxTime   time.Duration
	approve   string
	schema    string   // path
	watch     []string // SERVER:URI
	noSave    bool
	keepRuns  int    // 0: all
	resume    string // a session ID, latestRun, or "" for a new conversation
	// approveGiven says that the user chose the mode: dowel does not ask then.
	approveGiven bool
}

const runHelp = `Give a task to a language model that works with the tools of your servers, and print its answer. Read-only tools run,
and tools that you have allowed for good (dowel trust --tool). On a terminal dowel asks about each other call, as dowel chat does.
Without a terminal, with --json, or with --approve it never asks:

  read-only   as without --approve, but if the model calls another tool, dowel names it and ends with exit code 3. This is the
              default without a terminal and with --json.
  all         all tools run, whatever they do, with your rights on this machine
  none        no tool runs; a call ends dowel with exit code 3

--allow SERVER.TOOL lets one tool run, for this task alone.

If standard input is piped, it is added to the task; if the task is -, standard input is the whole task. -f adds files: texts,
images, sounds. @SERVER:URI in the task adds a resource of a server, also one of a template with its values, such as
@everything:test://template/7/data; dowel resources lists them. The model can list and read resources by itself, and is told when
one that it has read changes. /SERVER.PROMPT key=value… in place of the task sends a prompt of a server.

--schema FILE asks for an answer that is JSON and matches a JSON Schema. If it does not match, the model corrects it once.
--watch SERVER:URI runs the task again whenever the resource changes, until Ctrl-C, or until all runs together have used up
--max-tokens or --max-cost.

dowel saves the conversation as dowel chat does: --resume continues the last run of this folder with another task, dowel chat
--resume=ID continues it as a chat, dowel chat --trace shows its steps, and --no-save saves nothing. At its end, a run deletes the
oldest ones beyond --keep-runs and 1 GiB, except those that still run, have open tasks, or were continued in a chat.

dowel run uses all servers of your configuration, through the running dowel if it runs (dowel up); otherwise it starts them for
the task. --server, --url, or a command after -- choose other servers; files and shell are built in and work in the current folder
(--dir). --answer answers the questions of servers to the user: key=value answers every server that asks for that key,
SERVER.key=value answers one server and takes precedence. If a server asks for a model, the task's model answers with --approve
all; --sample-text answers with a fixed text.

` + modelregistry.Help + `

On a terminal the answer appears as it is written, and progress appears on standard error; elsewhere progress needs -v, which also
shows the beginning of each result. -vv shows results and thoughts completely. --json
writes lines of JSON instead, each with an "event": began, state, text, thought, reply, decision, call, progress, result,
question, tools, resources, compacted, notice, and finally end, with the answer. Their fields are described in
https://github.com/dowel-mcp/dowel/blob/main/docs/guide-program.md.

Exit codes: 0 the model answered, 1 failure or incomplete answer, 2 the limit of --max-steps, --max-tokens or --max-cost is reached, 3 an approval is needed,
124 the time of --max-time is over, 130 interrupted. 2 and 3 also have the meanings of all commands, see dowel help exit-codes.`

// NewCommand returns the command dowel run. f must not be nil.
func NewCommand(f *factory.Factory) *cobra.Command {
	opts := Options{Flags: agentcmd.Flags{AwaitServers: true}}
	cmd := &cobra.Command{
		Use:   "run TASK [-- COMMAND…]",
		Short: "Have a model carry out a task with the tools of your servers, and print its answer",
		Long:  runHelp,
		Example: `  dowel run "Which of my notes speak of Lisbon?" --server files
  dowel run "Fix the failing test" --server files --server shell --approve all --max-steps 50
  git diff | dowel run "Write a commit message for this change:" --model qwen3 --base-url http://localhost:11434/v1
  dowel run "What does the sign say?" -f sign.jpg --model claude-sonnet-4-5 -- npx -y @acme/translator`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			opts.approveGiven = cmd.Flags().Changed("approve")
			words, err := opts.TakeCommand(cmd, args)
			if err != nil {
				return err
			}
			return runTask(cmd.Context(), f, &opts, words)
		},
	}
	opts.addFlags(cmd)
	return cmd
}

// addFlags registers the flags with a command, which fills in opts when it parses its arguments.
func (opts *Options) addFlags(cmd *cobra.Command) {
	opts.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&opts.files, "file", "f", nil, "add this `file` to the task: a text, an image or a sound (repeatable)")
	flags.StringVar(&opts.system, "system", "", "the system prompt, instead of dowel's (`TEXT`, or @FILE)")
	flags.IntVar(&opts.maxSteps, "max-steps", agent.DefaultMaxSteps, "how many replies the model may use")
	flags.IntVar(&opts.maxTokens, "max-tokens", 0, "how many tokens the model may read and write; 0: no limit. The last reply may exceed it")
	flags.Float64Var(&opts.maxCost, "max-cost", 0, "how many US `dollars` the task may cost, by the model's price in your configuration; 0: no limit")
	flags.DurationVar(&opts.maxTime, "max-time", 0, "limit of the task's time after its servers have started; 0: no limit. --timeout limits each call of a tool")
	flags.StringVar(&opts.approve, "approve", string(agent.ModeReadOnly), "which `tools` run, without a question: read-only, all or none")
	flags.StringArrayVar(&opts.Allow, "allow", nil, "let this tool run in this task, without a question (`SERVER.TOOL`, or 'SERVER.*'; repeatable)")
	flags.StringVar(&opts.schema, "schema", "", "the answer must be JSON that the JSON Schema in this `file` accepts")
	flags.StringArrayVar(&opts.watch, "watch", nil, "run the task again when this resource changes (`SERVER:URI`, repeatable)")
	flags.BoolVar(&opts.noSave, "no-save", false, "do not save the conversation")
	flags.StringVar(&opts.resume, "resume", "", "continue the last run of this folder with the task as the next message, or the conversation `ID` (--resume=ID)")
	flags.Lookup("resume").NoOptDefVal = latestRun
	flags.IntVar(&opts.keepRuns, "keep-runs", defaultKeepRuns, "how many saved runs to keep: the oldest are deleted when this one ends; 0: all")
}

// resultsPrefix begins the name of a folder for long results in the system's folder for temporary
// files.
const resultsPrefix = "dowel-results-"

// runTask starts an agent, has it carry out the task, and shows the run.
func runTask(ctx context.Context, f *factory.Factory, opts *Options, words []string) error {
	o, err := opts.agentOptions()
	if err != nil {
		return err
	}
	t := task{Factory: f, opts: opts}
	if t.schema, err = readAnswerSchema(opts.schema); err != nil {
		return err
	}
	if t.schema != nil {
		o.System += t.schema.instructions()
	}
	c, err := clientOptions(f, &opts.Flags)
	if err != nil {
		return err
	}
	if t.input, err = readTask(ctx, f, opts, words); err != nil {
		return err
	}
	resumed, messages, err := opts.openResumed(ctx, f)
	if err != nil {
		return err
	}
	setup, err := agentcmd.ReadSetup(f, &opts.Flags)
	if err != nil {
		return err
	}
	if t.sessions, err = newSessionWriter(f, opts, setup.Model(), resumed); err != nil {
		return err
	}
	defer t.sessions.endSession()
	setup.OnRequest = t.sessions.AddRequest
	atomicfile.RemoveForgotten(resultsPrefix)
	if results, err := os.MkdirTemp("", resultsPrefix); err == nil { // without a folder, results stay in memory
		t.results = results
		defer os.RemoveAll(results)
	}
	o.Messages, o.Results, opts.Session = messages, t.sessions.results(t.results), cmp.Or(t.sessions.Session, resumed)
	if t.budget, err = opts.newBudget(setup.Model()); err != nil {
		return err
	}
	o.Budget = t.budget.check
	asker, release := newApprover(f, opts)
	defer release()
	if asker != nil {
		asker.log = &t.sessions.Log
		o.Mode, o.Approve, t.asker = agent.ModeAsk, asker.askApproval, asker
	}
	if t.runtime, err = setup.NewRuntime(ctx, f, &opts.Flags, o, c); err != nil {
		return err
	}
	defer t.runtime.Close()
	t.runtime.WarnUnknownAllowances(ctx, f, &opts.Flags)
	if err := t.input.assembleContent(ctx, f, t.runtime); err != nil {
		return err
	}
	t.sessions.attach(ctx)
	if len(opts.watch) > 0 {
		return t.runAtChanges(ctx)
	}
	return t.runOnce(ctx)
}

// agentOptions validates the flags and returns the agent's options.
func (opts *Options) agentOptions() (agent.Options, error) {
	o := agent.Options{Limits: agent.Limits{MaxSteps: opts.maxSteps}, Mode: agent.Mode(opts.approve)}
	switch o.Mode {
	case agent.ModeReadOnly, agent.ModeAll, agent.ModeNone:
	default:
		return o, exit.Usagef("--approve %s: want read-only, all or none", opts.approve)
	}
	if o.Mode == agent.ModeNone && len(opts.Allow) > 0 {
		return o, exit.Usagef("--approve none runs no tool, and --allow lets %s run: use one of them", opts.Allow[0])
	}
	if opts.maxSteps < 1 {
		return o, exit.Usagef("--max-steps %d: write a number from 1", opts.maxSteps)
	}
	if opts.keepRuns < 0 {
		return o, exit.Usagef("--keep-runs %d: write a number from 1, or 0 to keep all", opts.keepRuns)
	}
	if opts.maxTime < 0 {
		return o, exit.Usagef("--max-time %v: write a duration such as 5m", opts.maxTime)
	}
	var err error
	o.System, err = opts.readSystemPrompt()
	return o, err
}

// readSystemPrompt returns the system prompt: the text or file of --system, or dowel's own.
func (opts *Options) readSystemPrompt() (string, error) {
	path, isFile := strings.CutPrefix(opts.system, "@")
	switch {
	case isFile:
		text, err := os.ReadFile(path)
		if err != nil {
			return "", exit.Usagef("--system: %w", err)
		}
		return string(text), nil
	case opts.system != "":
		return opts.system, nil
	}
	folder, err := os.Getwd()
	if err != nil {
		folder = "not known"
	}
	return fmt.Sprintf(`You carry out a task for a user who cannot be asked meanwhile. Decide for yourself what is left open, and say so in your answer. Use your tools to find out what you do not know, and to do what is to be done; do not guess what they can tell. Your last reply, the one without a call of a tool, is printed in a terminal: make it the answer, complete and to the point.
The current folder is %s, the system is %s, and today is %s.`, folder, runtime.GOOS, time.Now().Format("Monday, 2 January 2006")), nil
}

// clientOptions returns the options of the connection to the servers. Only --answer answers the
// servers' questions.
func clientOptions(f *factory.Factory, opts *agentcmd.Flags) (client.Options, error) {
	o, err := agentcmd.ClientOptions(f, opts)
	if err != nil {
		return o, err
	}
	answers, err := toolargs.ParseArguments(opts.Answers)
	if err != nil {
		return o, exit.Usagef("--answer: %w", err)
	}
	if len(answers) > 0 {
		o.Answers.Elicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			q := &elicit.Asker{Out: f.Stderr, Answers: elicit.AnswersFor(r.Server, answers), Warn: f.Warn}
			return q.Ask(ctx, r)
		}
	}
	return o, nil
}
