package chat

import (
	"context"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/question"
	"github.com/dowel-mcp/dowel/internal/term"
)

// askApproval asks the user whether a call may run, here and in the console of a running dowel. It
// implements [agent.Options.Approve].
func (c *conversation) askApproval(ctx context.Context, q agent.Question) (agent.Decision, error) {
	c.log.DecidedAt = "" // of a decision that the end of its run has overtaken
	d, isElsewhere, err := agentcmd.AskShared(ctx, factory.RunningDaemon(), agentcmd.NewApproval("dowel chat", c.log.ID(), q), func(ctx context.Context) (agent.Decision, error) {
		return c.askHere(ctx, q)
	})
	if isElsewhere {
		c.log.DecidedAt = agentcmd.ConsoleName
		c.view.Note("%s", term.RevealLine(agentcmd.DescribeDecision(d)))
	}
	return d, err
}

// askHere asks on the terminal.
func (c *conversation) askHere(ctx context.Context, q agent.Question) (agent.Decision, error) {
	c.view.Hold(true)
	defer c.view.Hold(false)
	if c.screen != nil {
		return c.screen.askApproval(ctx, c, q)
	}
	asker := question.Asker{Out: c.side, Runtime: c.runtime, Ask: c.askUser, EditText: c.editText}
	return asker.AskApproval(ctx, q)
}

// writeLine writes one line of a question to the screen for messages.
func (c *conversation) writeLine(format string, args ...any) {
	fmt.Fprintf(c.side, format+"\n", args...)
}

// askUser shows a prompt and reads one answer. Keys typed before the prompt do not count. Ctrl-C
// stops the work that asked.
func (c *conversation) askUser(ctx context.Context, prompt string) (string, error) {
	return c.readAnswer(ctx, term.Question{Prompt: c.side.Bold(prompt) + " ", Answer: true, Fresh: true})
}

// readAnswer reads a line and turns Ctrl-C into the cause for which ctx ended, or errStopped.
func (c *conversation) readAnswer(ctx context.Context, a term.Question) (string, error) {
	text, err := c.in.ReadLine(ctx, a)
	if errors.Is(err, term.ErrInterrupted) {
		c.interrupts.handlePress()
		if err = context.Cause(ctx); err == nil {
			err = errStopped
		}
	}
	if err == nil {
		c.interrupts.forgetPress()
	}
	return text, err
}
