// Package run implements dowel run: a model carries out one task with the tools of the user's
// servers. On a terminal the user is asked about calls that need an approval. A viewer shows the
// events of the run, as lines for a person or as JSON for a program. taskProgress follows the same
// events and decides the exit code.
package run

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// Options holds the flags of dowel run. The zero value is not usable: [NewCommand] sets the
// defaults.
type Options struct {
	agentcmd.Flags
	files    []string
	system   string
	maxSteps int
	maxTime  time.Duration
	approve  string
	// approveGiven says that the user chose the mode: dowel does not ask then.
	approveGiven bool
}

// NewCommand returns the command dowel run. f must not be nil.
func NewCommand(f *factory.Factory) *cobra.Command {
	opts := Options{Flags: agentcmd.Flags{AwaitServers: true}}
	cmd := &cobra.Command{
		Use:   "run TASK [-- COMMAND…]",
		Short: "Have a model carry out a task with the tools of your servers, and print its answer",
		Long: `Give a task to a language model that works with the tools of your servers, and print its answer. Read-only tools run,
and tools that you have allowed for good (dowel trust --tool). On a terminal dowel asks about each other call, as dowel chat does.
Without a terminal, with --json, or with --approve it never asks:

  read-only   as without --approve, but if the model calls another tool, dowel names it and ends with exit code 3. This is the
              default without a terminal and with --json.
  all         all tools run, whatever they do, with your rights on this machine
  none        no tool runs; a call ends dowel with exit code 3

If standard input is piped, it is added to the task; if the task is -, standard input is the whole task. -f adds files: texts,
images, sounds. @SERVER:URI in the task adds a resource of a server, also one of a template with its values, such as
@everything:test://template/7/data; dowel resources lists them. The model can list and read resources by itself, and is told when
one that it has read changes.

dowel run uses all servers of your configuration, through the running dowel if it runs (dowel up); otherwise it starts them for
the task. --server, --url, or a command after -- choose other servers; files and shell are built in and work in the current folder
(--dir). --answer answers the questions of servers to the user: key=value answers every server that asks for that key,
SERVER.key=value answers one server and takes precedence. If a server asks for a model, the task's model answers with --approve
all; --sample-text answers with a fixed text.

` + modelregistry.Help + `

On a terminal the answer appears as it is written, and progress appears on standard error; elsewhere progress needs -v. --json
writes lines of JSON instead, each with an "event": began, state, text, thought, reply, decision, call, progress, result,
question, tools, resources, compacted, notice, and finally end, with the answer. Their fields are described in
https://github.com/dowel-mcp/dowel/blob/main/docs/guide-program.md.

Exit codes: 0 the model answered, 1 failure or incomplete answer, 2 the steps of --max-steps are used up, 3 an approval is needed,
124 the time of --max-time is over, 130 interrupted. 2 and 3 also have the meanings of all commands, see dowel help exit-codes.`,
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
	opts.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&opts.files, "file", "f", nil, "add this `file` to the task: a text, an image or a sound (repeatable)")
	flags.StringVar(&opts.system, "system", "", "the system prompt, instead of dowel's (`TEXT`, or @FILE)")
	flags.IntVar(&opts.maxSteps, "max-steps", agent.DefaultMaxSteps, "how many replies the model may use")
	flags.DurationVar(&opts.maxTime, "max-time", 0, "limit of the task's time after its servers have started; 0: no limit. --timeout limits each call of a tool")
	flags.StringVar(&opts.approve, "approve", string(agent.ModeReadOnly), "which `tools` run, without a question: read-only, all or none")
	return cmd
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
	c, err := clientOptions(f, &opts.Flags)
	if err != nil {
		return err
	}
	input, err := readTask(ctx, f, opts, words)
	if err != nil {
		return err
	}
	atomicfile.RemoveForgotten(resultsPrefix)
	if results, err := os.MkdirTemp("", resultsPrefix); err == nil { // without a folder, results stay in memory
		o.Results = results
		defer os.RemoveAll(results)
	}
	setup, err := agentcmd.ReadSetup(f, &opts.Flags)
	if err != nil {
		return err
	}
	asker, release := newApprover(f, opts)
	defer release()
	if asker != nil {
		o.Mode, o.Approve = agent.ModeAsk, asker.askApproval
	}
	r, err := setup.NewRuntime(ctx, f, &opts.Flags, o, c)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := input.attachResources(ctx, f, r); err != nil {
		return err
	}
	return watchTask(ctx, f, r, input, opts.maxTime, asker)
}

// agentOptions validates the flags and returns the agent's options.
func (opts *Options) agentOptions() (agent.Options, error) {
	o := agent.Options{Limits: agent.Limits{MaxSteps: opts.maxSteps}, Mode: agent.Mode(opts.approve)}
	switch o.Mode {
	case agent.ModeReadOnly, agent.ModeAll, agent.ModeNone:
	default:
		return o, exit.Usagef("--approve %s: want read-only, all or none", opts.approve)
	}
	if opts.maxSteps < 1 {
		return o, exit.Usagef("--max-steps %d: write a number from 1", opts.maxSteps)
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

// errBudget is the error of a task that used up its steps.
type errBudget struct{ steps int }

// Error implements [error].
func (e errBudget) Error() string {
	return fmt.Sprintf("the model did not finish within %d steps", e.steps)
}

// ExitStatus tells package exit the code.
func (errBudget) ExitStatus() int { return exit.Budget }

// Advice tells the user how to allow more steps.
func (errBudget) Advice() string { return "raise the limit with --max-steps" }

// errCut is the error of an answer that was cut off.
type errCut struct{}

// Error implements [error].
func (errCut) Error() string {
	return "the model's answer reached its length limit and was cut off"
}

// Advice tells the user how to get the whole answer.
func (errCut) Advice() string {
	return `raise "maxTokens" of the model in your dowel.json, or ask for less at a time; in dowel chat, write "go on" for the rest`
}

// errTime is the error of a task that exceeded --max-time.
type errTime struct{ limit time.Duration }

// Error implements [error].
func (e errTime) Error() string {
	return fmt.Sprintf("the model did not finish within %v", e.limit)
}

// Unwrap returns [context.DeadlineExceeded].
func (errTime) Unwrap() error { return context.DeadlineExceeded }

// Advice tells the user how to allow more time.
func (errTime) Advice() string { return "raise the limit with --max-time" }

// errApproval is the error of a call that needs an approval.
type errApproval struct {
	tool   string
	server string
	effect agent.Effect
	mode   agent.Mode
	trust  string // argument of dowel trust --tool; "" if trust cannot allow exactly this tool
	// change is set if the user had allowed an earlier definition of the tool for good.
	change *control.Changed
}

// Error implements [error].
func (e errApproval) Error() string {
	effect := map[agent.Effect]string{
		agent.ReadOnly: "it only reads", agent.Changes: "it changes something", agent.Destructive: "it may destroy something, or declares no effect",
	}[e.effect]
	if e.change != nil {
		return fmt.Sprintf("the model called %s, which has changed since you allowed it (seen %s) and needs an approval again: %s\n  %s",
			toolname.Display(e.tool), e.change.Time.Local().Format("2006-01-02 15:04"), effect, strings.Join(revealLines(e.change.Lines), "\n  "))
	}
	if e.isUntrusted() {
		effect = "only its server says that it is read-only"
	}
	return fmt.Sprintf("the model called %s, which needs an approval: %s", toolname.Display(e.tool), effect)
}

// revealLines makes invisible characters of lines visible.
func revealLines(lines []string) (shown []string) {
	for _, line := range lines {
		shown = append(shown, term.RevealLine(line))
	}
	return shown
}

// isUntrusted reports whether the call is refused since the user does not believe the annotations
// of the tool's server.
func (e errApproval) isUntrusted() bool {
	return e.effect == agent.ReadOnly && e.mode == agent.ModeReadOnly && e.change == nil
}

// ExitStatus tells package exit the code.
func (errApproval) ExitStatus() int { return exit.Approval }

// Advice tells the user how to allow the tool.
func (e errApproval) Advice() string {
	switch {
	case e.mode == agent.ModeNone && e.effect == agent.ReadOnly:
		return "allow it with --approve read-only"
	case e.isUntrusted() && e.trust != "":
		return fmt.Sprintf("if you trust %[1]s to say which of its tools are read-only, allow these for good with dowel trust --annotations %[1]s, or for this run with --trust-annotations", e.server)
	case e.isUntrusted():
		return "if you trust its server to say which of its tools are read-only, allow these for this run with --trust-annotations"
	case e.change != nil && e.trust != "":
		return "look at the change, and allow the tool as it is now with dowel trust --tool " + e.trust
	case e.mode == agent.ModeNone, e.trust == "": // ModeNone ignores permanent approvals
		return "allow all tools with --approve all"
	}
	return "allow all tools with --approve all, or this one for good with dowel trust --tool " + e.trust
}

// errTask is the error of a failed task.
type errTask struct{ err error }

// Error returns the message of the cause.
func (e errTask) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e errTask) Unwrap() error { return e.err }

// ExitStatus tells package exit the code. A failed task has the same code whatever made it fail.
func (errTask) ExitStatus() int { return exit.Failed }

// watchTask runs the task and shows its events. limit bounds the run; 0 means no limit. A call that
// needs an approval ends the run unless asker, which may be nil, asks the user.
func watchTask(ctx context.Context, f *factory.Factory, r *agentcmd.Runtime, input taskInput, limit time.Duration, asker *approver) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if limit > 0 {
		timer := time.AfterFunc(limit, func() { cancel(errTime{limit}) })
		defer timer.Stop()
	}
	p := &taskProgress{startTime: time.Now(), mode: r.Mode, trustArgument: r.Trusted, changeOf: r.Change, references: input.references}
	view := newViewer(ctx, f, r, p, asker)
	var err error
	for e, failed := range r.Run(ctx, input.content...) {
		if failed != nil {
			err = failed
			break
		}
		p.recordEvent(e)
		view.showEvent(e)
		if p.missingApproval != nil {
			cancel(*p.missingApproval) // also stops other calls of the same reply
		}
	}
	err = p.taskError(ctx, err)
	view.showEnd(err)
	return err
}

// viewer shows a run to a person or a program.
type viewer interface {
	showEvent(e agent.Event)
	showEnd(err error)
}

func newViewer(ctx context.Context, f *factory.Factory, r *agentcmd.Runtime, p *taskProgress, asker *approver) viewer {
	if f.JSON {
		return newJSONViewer(ctx, f, r, p)
	}
	v := newLineViewer(f, p)
	if asker != nil {
		asker.runtime, asker.renderer = r, v.renderer
	}
	return v
}

// taskProgress collects the state of a run from its events.
type taskProgress struct {
	startTime       time.Time
	mode            agent.Mode
	step            int
	partialReply    strings.Builder // text of the current reply so far
	answer          string          // the last reply
	ended           *agent.Ended
	usage           agent.Usage
	missingApproval *errApproval

	references    []agentcmd.Reference     // resources in the task
	trustArgument func(tool string) string // see [agentcmd.Runtime.Trusted]
	changeOf      func(tool string) (change *control.Changed, wasAllowed bool)
}

func (p *taskProgress) recordEvent(e agent.Event) {
	switch e := e.(type) {
	case agent.StateChanged:
		if p.step = e.Step; e.State == agent.Thinking {
			p.partialReply.Reset()
		}
	case agent.Delta:
		p.partialReply.WriteString(e.Text)
		if e.Message != nil {
			p.recordReply(e.Message)
		}
	case agent.Approval:
		if !e.Allowed && e.Call.Name != "" && p.missingApproval == nil && p.mode != agent.ModeAsk {
			p.missingApproval = &errApproval{tool: e.Call.Name, server: e.Server, effect: e.Effect, mode: p.mode, trust: p.trustArgument(e.Call.Name)}
			if change, wasAllowed := p.changeOf(e.Call.Name); wasAllowed && p.mode != agent.ModeNone {
				p.missingApproval.change = change
			}
		}
	case agent.Ended:
		p.ended = &e
		p.usage = e.Usage
	}
}

func (p *taskProgress) recordReply(m *agent.Message) {
	p.partialReply.Reset()
	p.answer = m.Text()
	if u := m.Usage; u != nil {
		p.usage.Input += u.Input
		p.usage.Cached += u.Cached
		p.usage.Output += u.Output
	}
}

// answerText returns the answer. If the run ended in the middle of a reply, it returns that part.
func (p *taskProgress) answerText() string {
	return cmp.Or(strings.TrimSpace(p.partialReply.String()), p.answer)
}

// taskError returns the error of the task, which decides the exit code. err is the run's error.
func (p *taskProgress) taskError(ctx context.Context, err error) error {
	var interrupted *exit.Interruption
	var timeout errTime
	switch {
	case p.missingApproval != nil:
		return *p.missingApproval
	case err != nil && errors.As(context.Cause(ctx), &timeout):
		return timeout
	case errors.As(err, &interrupted), errors.As(context.Cause(ctx), &interrupted) && err != nil:
		return fmt.Errorf("the task was interrupted: %w", interrupted)
	case err != nil && errors.Is(context.Cause(ctx), exit.ErrReaderGone):
		return exit.ErrReaderGone
	case err != nil:
		return errTask{err}
	case p.ended != nil && p.ended.Reason == agent.BudgetSpent:
		return errBudget{p.ended.Steps}
	case p.ended != nil && p.ended.Reason == agent.CutOff:
		return errCut{}
	}
	return nil
}
