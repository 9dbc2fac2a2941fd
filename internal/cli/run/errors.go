package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
)

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
	return `raise "maxTokens" of the model in your dowel.json, or ask for less at a time; or continue the saved run with dowel run --resume "go on"`
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
	// argument of --allow; "" if it cannot name exactly this tool.
	argument string
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
	case e.mode == agent.ModeNone, e.argument == "": // ModeNone ignores permanent approvals
		return "allow all tools with --approve all"
	case e.trust == "":
		return "allow this tool for this run with --allow " + e.argument + ", or all tools with --approve all"
	}
	return "allow this tool for this run with --allow " + e.argument + ", or for good with dowel trust --tool " + e.trust + ", or all tools with --approve all"
}

// errTask is the error of a failed task.
type errTask struct{ err error }

// Error returns the message of the cause.
func (e errTask) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e errTask) Unwrap() error { return e.err }

// ExitStatus tells package exit the code. A failed task has the same code whatever made it fail.
func (errTask) ExitStatus() int { return exit.Failed }
