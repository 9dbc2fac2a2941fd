package agent

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// Defaults of [Options].
const (
	DefaultMaxSteps  = 30
	DefaultMaxResult = 25_000
)

// Options configure an [Agent]. The zero value is ready: it runs read-only tools only, since nobody can be asked.
type Options struct {
	// System is what the model is told before everything else.
	System string
	// Messages are what has been said before.
	Messages []Message
	// MaxSteps bounds the replies of a run, default [DefaultMaxSteps].
	MaxSteps int
	// MaxResult bounds what the model is given of a result, in characters, default [DefaultMaxResult]: of a longer one it gets
	// the head and the tail, and a tool to read the rest. Negative: no bound.
	MaxResult int

	// Mode says which tools run without Approve, default [ModeAsk].
	Mode Mode
	// Approve decides on a call. It is called from the goroutine of the run, one at a time; an error ends the run.
	Approve func(ctx context.Context, q Question) (Decision, error)
	// Allowed reports whether a tool has been allowed for good.
	Allowed func(tool string) bool
}

func (o *Options) complete() {
	if o.MaxSteps <= 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	if o.MaxResult == 0 {
		o.MaxResult = DefaultMaxResult
	}
	if o.Mode == "" {
		o.Mode = ModeAsk
	}
}

// Agent is a conversation of a model with a user and with tools. One run at a time.
type Agent struct {
	model Model
	tools Tools
	opts  Options

	running sync.Mutex // held by a run, whose all below is

	messages []Message
	listed   []mcp.Tool // nil before the first list
	allowed  map[string]bool
	results  results
	repeats  repeats
}

// New returns an agent. It calls nothing yet.
func New(m Model, t Tools, opts ...Options) *Agent {
	a := &Agent{model: m, tools: t, allowed: map[string]bool{}}
	if len(opts) > 1 {
		panic("agent: more than one options struct")
	}
	if len(opts) == 1 {
		a.opts = opts[0]
	}
	a.opts.complete()
	a.messages = slices.Clone(a.opts.Messages)
	return a
}

// ErrRunning is the error of a run that begins before another has ended.
var ErrRunning = errors.New("the agent is working on something else")

// Messages returns the conversation so far. It must not be called while a run goes on.
func (a *Agent) Messages() []Message { return slices.Clone(a.messages) }

// Run says something to the model and yields what happens, until the model has answered, the budget is spent, or there is an
// error, which comes last. When ctx ends, tools are told so, and what the model has said until then stays in the conversation,
// which can go on with another run. A caller that leaves the loop ends the run, too.
func (a *Agent) Run(ctx context.Context, input ...mcp.Content) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if !a.running.TryLock() {
			yield(nil, ErrRunning)
			return
		}
		defer a.running.Unlock()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		r := &run{Agent: a, ctx: ctx, cancel: cancel, yield: yield}
		r.start(input)
	}
}
