package run

import (
	"fmt"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
)

// A budget bounds the tokens and the cost of all runs of the agent together. It belongs to the
// goroutine of the run.
type budget struct {
	tokens  int     // 0: no bound
	dollars float64 // 0: no bound
	model   modelregistry.Choice
	earlier agent.Usage // of the runs that have ended
	checked agent.Usage // of this run, at the last check; may be estimated
}

// newBudget returns the budget of the flags.
func (opts *Options) newBudget(model modelregistry.Choice) (*budget, error) {
	if opts.maxTokens < 0 {
		return nil, exit.Usagef("--max-tokens %d: write a number from 1, or leave it out for no limit", opts.maxTokens)
	}
	if opts.maxCost < 0 {
		return nil, exit.Usagef("--max-cost %g: write US dollars, such as 0.5, or leave it out for no limit", opts.maxCost)
	}
	if _, ok := model.Cost(agent.Usage{}); !ok && opts.maxCost > 0 {
		return nil, exit.Usagef(`--max-cost: the price of %s is unknown: add "price": {"input": 3, "output": 15} (US dollars for a million tokens) to the model in your dowel.json, or use --max-tokens`, model.Label())
	}
	return &budget{tokens: opts.maxTokens, dollars: opts.maxCost, model: model}, nil
}

// check implements [agent.Options.Budget].
func (b *budget) check(u agent.Usage) error {
	b.checked = u
	u = addUsage(u, b.earlier)
	if n := u.Input + u.Output; b.tokens > 0 && n >= b.tokens {
		return errSpent{fmt.Sprintf("%s of %s tokens", display.Thousands(n), display.Thousands(b.tokens)), "--max-tokens"}
	}
	if cost, _ := b.model.Cost(u); b.dollars > 0 && cost >= b.dollars {
		return errSpent{fmt.Sprintf("$%.2f of $%.2f", cost, b.dollars), "--max-cost"}
	}
	return nil
}

// endRun adds the tokens of a run that has ended. If the provider reports none, the tokens at the
// last check count.
func (b *budget) endRun(ended agent.Usage) {
	if b.checked.Input+b.checked.Output > ended.Input+ended.Output {
		ended = b.checked
	}
	b.earlier, b.checked = addUsage(b.earlier, ended), agent.Usage{}
}

func addUsage(a, b agent.Usage) agent.Usage {
	return agent.Usage{Input: a.Input + b.Input, Cached: a.Cached + b.Cached, Output: a.Output + b.Output}
}

// errSpent is the error of a task that used up its tokens or its cost.
type errSpent struct{ spent, flag string }

// Error implements [error].
func (e errSpent) Error() string {
	return "the model did not finish within the budget: it used " + e.spent
}

// ExitStatus tells package exit the code.
func (errSpent) ExitStatus() int { return exit.Budget }

// Advice tells the user how to allow more.
func (e errSpent) Advice() string { return "raise the limit with " + e.flag }
