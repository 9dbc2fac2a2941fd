// Package run is dowel run: a model carries out one task with the tools of the user's servers, and
// nobody is asked meanwhile. A viewer shows what happens, as lines for a person or as JSON.
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
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/elicit"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// Options say what is to be done, and how.
type Options struct {
	agentcmd.Flags
	files    []string
	system   string
	maxSteps int
	maxTime  time.Duration
	approve  string
}

func NewCommand(f *factory.Factory) *cobra.Command {
	opts := Options{Flags: agentcmd.Flags{AwaitServers: true}}
	cmd := &cobra.Command{
		Use:   "run TASK [-- COMMAND…]",
		Short: "Have a model carry out a task with the tools of your servers, and print its answer",
		Long: `Give a task to a language model that works with the tools of your servers, and print its answer. Nobody is asked meanwhile:
what tools may do is said before, by --approve.

  read-only   tools that say that they change nothing run, and those that you have allowed for good (dowel trust --tool); when
              the model calls another one, dowel ends with exit code 3 and names it. It is the default.
  all         all tools run, whatever they do: as you, on this machine
  none        no tool runs; a call ends dowel with exit code 3

The task is also read from standard input, where something is piped into it: behind the task, or alone where that is -.
Files of -f go along: texts, images, sounds.

The tools are those of your whole configuration: of the running dowel (dowel up), else of servers that are started for the while.
With --server, --url or a command behind -- they are those of the named servers alone; files and shell are built in, and work in
the current folder (--dir). What a server asks the user is answered by --answer: key=value answers whoever asks for that key, and
SERVER.key=value that server alone, before the other. What it asks a model is answered by the model that works, where --approve is
all, or by --sample-text.

` + modelregistry.Help + `

On a terminal the answer appears as it comes, and what happens meanwhile on standard error, elsewhere with -v. --json writes what
happens as lines of JSON instead, each with its "event": began, state, text, thought, reply, decision, call, progress, result,
question, tools, compacted, notice, and at last end, with the answer. docs/guide-program.md says what is in them.

Exit codes: 0 the model has answered, 1 a failure, or an answer that was cut off, 2 the steps of --max-steps are spent, 3 an
approval is needed, 124 the time of --max-time is over, 130 interrupted; 2 and 3 also stand for what they do in all commands, see
dowel help exit-codes.`,
		Example: `  dowel run "Which of my notes speak of Lisbon?" --server files
  dowel run "Fix the failing test" --server files --server shell --approve all --max-steps 50
  git diff | dowel run "Write a commit message for this change:" --model qwen3 --base-url http://localhost:11434/v1
  dowel run "What does the sign say?" -f sign.jpg --model claude-sonnet-4-5 -- npx -y @acme/translator`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			words, err := opts.TakeCommand(cmd, args)
			if err != nil {
				return err
			}
			return runTask(cmd.Context(), f, &opts, words)
		},
	}
	opts.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&opts.files, "file", "f", nil, "give the model this `file`, too: a text, an image or a sound (repeatable)")
	flags.StringVar(&opts.system, "system", "", "what the model is told first, instead of a few words of dowel's (`TEXT`, or @FILE)")
	flags.IntVar(&opts.maxSteps, "max-steps", agent.DefaultMaxSteps, "how many replies of the model there may be")
	flags.DurationVar(&opts.maxTime, "max-time", 0, "how long the task may take, once its servers are there; 0: no limit. --timeout is for each call of a tool")
	flags.StringVar(&opts.approve, "approve", string(agent.ModeReadOnly), "which `tools` run: read-only, all or none")
	return cmd
}

// runTask carries out a task.
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
	if results, err := os.MkdirTemp("", "dowel-results-"); err == nil { // else they are kept in memory
		o.Results = results
		defer os.RemoveAll(results)
	}
	b, err := agentcmd.NewRuntime(ctx, f, &opts.Flags, o, c)
	if err != nil {
		return err
	}
	defer b.Close()
	return watchTask(ctx, f, b, input, opts.maxTime)
}

// agentOptions are the agent's.
func (opts *Options) agentOptions() (agent.Options, error) {
	o := agent.Options{MaxSteps: opts.maxSteps, Mode: agent.Mode(opts.approve)}
	switch o.Mode {
	case agent.ModeReadOnly, agent.ModeAll, agent.ModeNone:
	default:
		return o, exit.Usagef("--approve %s: there are read-only, all and none", opts.approve)
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

// readSystemPrompt are what the model is told first.
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
	here, err := os.Getwd()
	if err != nil {
		here = "not known"
	}
	return fmt.Sprintf(`You carry out a task for a user who cannot be asked meanwhile. Decide for yourself what is left open, and say so in your answer. Use your tools to find out what you do not know, and to do what is to be done; do not guess what they can tell. Your last reply, the one without a call of a tool, is printed in a terminal: make it the answer, complete and to the point.
The current folder is %s, the system is %s, and today is %s.`, here, runtime.GOOS, time.Now().Format("Monday, 2 January 2006")), nil
}

// clientOptions are the options of a connection to servers whose questions nobody answers but flags.
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

// errBudget says that a task was not done within its steps.
type errBudget struct{ steps int }

func (e errBudget) Error() string {
	return fmt.Sprintf("the model has not come to an end within %d steps", e.steps)
}

// ExitStatus tells package exit the code.
func (errBudget) ExitStatus() int { return exit.Budget }

// Advice tells the user how to go on.
func (errBudget) Advice() string { return "allow more with --max-steps" }

// errCut says that an answer is not whole.
type errCut struct{}

func (errCut) Error() string {
	return "the model's answer has reached the bound of its length, and was cut off"
}

// Advice tells the user how to get the whole answer.
func (errCut) Advice() string {
	return `raise "maxTokens" of the model in your dowel.json, or ask for less at a time; in dowel chat, "go on" brings the rest`
}

// errTime says that a task was not done within its time.
type errTime struct{ limit time.Duration }

func (e errTime) Error() string {
	return fmt.Sprintf("the model has not come to an end within %v", e.limit)
}

// Unwrap says that it is a limit that has passed.
func (errTime) Unwrap() error { return context.DeadlineExceeded }

// Advice tells the user how to allow more time.
func (errTime) Advice() string { return "allow more with --max-time" }

// errApproval says that a tool was called that may not run without an approval.
type errApproval struct {
	tool   string
	effect agent.Effect
	mode   agent.Mode
	trust  string // what dowel trust --tool takes for the tool; empty where that would not allow it, or more
}

func (e errApproval) Error() string {
	what := map[agent.Effect]string{
		agent.ReadOnly: "it only reads", agent.Changes: "it changes something", agent.Destructive: "it may destroy something, or does not say what it does",
	}[e.effect]
	return fmt.Sprintf("the model wants to call %s, which needs an approval that nobody can give here: %s", toolname.Display(e.tool), what)
}

// ExitStatus tells package exit the code.
func (errApproval) ExitStatus() int { return exit.Approval }

// Advice tells the user how to allow the tool.
func (e errApproval) Advice() string {
	switch {
	case e.mode == agent.ModeNone && e.effect == agent.ReadOnly:
		return "allow it with --approve read-only"
	case e.mode == agent.ModeNone, e.trust == "": // none of those that are allowed for good run in that mode
		return "allow all tools with --approve all"
	}
	return "allow all tools with --approve all, or this one for good with dowel trust --tool " + e.trust
}

// errTask says why a task has failed, whatever led to it.
type errTask struct{ err error }

func (e errTask) Error() string { return e.err.Error() }
func (e errTask) Unwrap() error { return e.err }

// ExitStatus tells package exit the code. A failed task has the same code whatever made it fail.
func (errTask) ExitStatus() int { return exit.Failed }

// watchTask runs the task, and shows what happens.
func watchTask(ctx context.Context, f *factory.Factory, b *agentcmd.Runtime, input []mcp.Content, limit time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if limit > 0 {
		late := time.AfterFunc(limit, func() { cancel(errTime{limit}) })
		defer late.Stop()
	}
	p := &taskProgress{startTime: time.Now(), mode: b.Mode, trustArgument: b.Trusted}
	show := newViewer(ctx, f, b, p)
	var err error
	for e, failed := range b.Run(ctx, input...) {
		if failed != nil {
			err = failed
			break
		}
		p.recordEvent(e)
		show.showEvent(e)
		if p.missingApproval != nil {
			cancel(*p.missingApproval) // the calls of the same reply that run already, too
		}
	}
	err = p.taskError(ctx, err)
	show.showEnd(err)
	return err
}

// viewer shows a performance, to people or to programs.
type viewer interface {
	showEvent(e agent.Event)
	showEnd(err error)
}

func newViewer(ctx context.Context, f *factory.Factory, b *agentcmd.Runtime, p *taskProgress) viewer {
	if f.JSON {
		return newJSONViewer(ctx, f, b, p)
	}
	return newLineViewer(f, p)
}

// taskProgress is what is known of a task that is being carried out.
type taskProgress struct {
	startTime       time.Time
	mode            agent.Mode
	step            int
	partialReply    strings.Builder // of the present reply, as far as it has come
	answer          string          // the last reply
	ended           *agent.Ended
	usage           agent.Usage
	missingApproval *errApproval

	trustArgument func(tool string) string // of what is assembled
}

func (p *taskProgress) recordEvent(e agent.Event) {
	switch e := e.(type) {
	case agent.StateChanged:
		if p.step = e.Step; e.State == agent.Thinking {
			p.partialReply.Reset()
		}
	case agent.Said:
		p.partialReply.WriteString(e.Text)
	case agent.Replied:
		p.partialReply.Reset()
		p.answer = e.Message.Text()
		if u := e.Message.Usage; u != nil {
			p.usage.Input += u.Input
			p.usage.Cached += u.Cached
			p.usage.Output += u.Output
		}
	case agent.Approval:
		if !e.Allowed && e.Call.Name != "" && p.missingApproval == nil {
			p.missingApproval = &errApproval{e.Call.Name, e.Effect, p.mode, p.trustArgument(e.Call.Name)}
		}
	case agent.Ended:
		p.ended = &e
		p.usage = e.Usage
	}
}

// answerText is the answer, or what there is of one.
func (p *taskProgress) answerText() string {
	return cmp.Or(strings.TrimSpace(p.partialReply.String()), p.answer)
}

// taskError is what the task has come to.
func (p *taskProgress) taskError(ctx context.Context, err error) error {
	var interrupted *exit.Interruption
	var late errTime
	switch {
	case p.missingApproval != nil:
		return *p.missingApproval
	case err != nil && errors.As(context.Cause(ctx), &late):
		return late
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
