package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/question"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/term"
)

// approver asks the user on the terminal whether a call may run. Set log, runtime and renderer
// before the run begins.
type approver struct {
	out      *term.Screen
	console  *term.Console
	log      *sessionlog.Log
	runtime  *agentcmd.Runtime
	renderer *agentview.Renderer
}

// newApprover returns an approver, or nil if the user cannot be asked or has decided with
// --approve. The caller calls release.
func newApprover(f *factory.Factory, opts *Options) (a *approver, release func()) {
	in := term.Terminal(f.Stdin)
	if in == nil || !f.Stderr.IsTerminal() || f.JSON || opts.approveGiven {
		return nil, func() {}
	}
	a = &approver{out: f.Stderr, console: term.NewConsole(in, f.Stderr.File)}
	restore := []func(){f.Stderr.Divert(a.console)}
	if f.Stdout.IsTerminal() {
		restore = append(restore, f.Stdout.Divert(a.console))
	}
	return a, func() {
		for _, end := range restore {
			end()
		}
	}
}

// askApproval implements [agent.Options.Approve]. It asks here and in the console of a running
// dowel.
func (a *approver) askApproval(ctx context.Context, q agent.Question) (agent.Decision, error) {
	a.log.DecidedAt = ""
	d, isElsewhere, err := agentcmd.AskShared(ctx, factory.RunningDaemon(), agentcmd.NewApproval("dowel run", a.log.ID(), q), func(ctx context.Context) (agent.Decision, error) {
		return a.askHere(ctx, q)
	})
	if isElsewhere {
		a.log.DecidedAt = agentcmd.ConsoleName
		fmt.Fprintln(a.out, a.out.Dim(term.RevealLine(agentcmd.DescribeDecision(d))))
	}
	return d, err
}

// askHere asks on the terminal.
func (a *approver) askHere(ctx context.Context, q agent.Question) (agent.Decision, error) {
	a.renderer.Hold(true)
	defer a.renderer.Hold(false)
	asker := question.Asker{Out: a.out, Runtime: a.runtime, Ask: a.askUser, EditText: a.editText}
	return asker.AskApproval(ctx, q)
}

// askUser shows a prompt and reads one answer. Ctrl-C ends the task.
func (a *approver) askUser(ctx context.Context, prompt string) (string, error) {
	return a.readAnswer(ctx, term.Question{Prompt: a.out.Bold(prompt) + " ", Answer: true, Fresh: true})
}

// editText lets the user edit JSON on one line.
func (a *approver) editText(ctx context.Context, text string) (string, error) {
	if compact, err := json.Marshal(json.RawMessage(text)); err == nil {
		text = string(compact)
	}
	return a.readAnswer(ctx, term.Question{Prompt: a.out.Bold("Arguments:") + " ", Prefill: text, Answer: true, Fresh: true})
}

func (a *approver) readAnswer(ctx context.Context, q term.Question) (string, error) {
	text, err := a.console.ReadLine(ctx, q)
	if errors.Is(err, term.ErrInterrupted) {
		err = &exit.Interruption{Signal: os.Interrupt} // the terminal is raw, so no signal has come
	}
	return text, err
}
