package agent

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/mcp"
)

// Defaults of [Options].
const (
	DefaultMaxSteps  = 30
	DefaultMaxResult = 25_000
	DefaultMaxMedia  = 5 << 20
	DefaultCompactAt = 0.8
	DefaultSearchAt  = 0.1
)

// assumedWindow is the window of a model that does not say, where it is to be decided how many tools it is given.
const assumedWindow = 128_000

// Options configure an [Agent]. The zero value is ready: it runs read-only tools only, since nobody can be asked.
type Options struct {
	// System is what the model is told before everything else.
	System string
	// Instructions, where it is set, returns what the model is told behind System, and may be something else once the tools have
	// been listed anew, such as what their servers say of themselves: what changes at other times costs what the provider has read.
	// It is called often, also while no run goes on.
	Instructions func() string
	// Messages are what has been said before. They are mended, see [Mend].
	Messages []Message
	// MaxSteps bounds the replies of a run, default [DefaultMaxSteps], and apart from those the samples that servers may have of
	// the model during it.
	MaxSteps int
	// MaxResult bounds what the model is given of a result, in characters, default [DefaultMaxResult]: of a longer one it gets
	// the head and the tail, and a tool to read the rest, as much at a time. Negative: no bound.
	MaxResult int
	// Results is a folder for what was left out of long results, which is made when it is needed: for Messages that are taken up
	// again, the same as before. Empty: they are kept in memory.
	Results string
	// MaxMedia bounds an image, a sound or another binary of a result, in bytes, default [DefaultMaxMedia], and four times that all
	// of one result together: what is beyond it is left out, and the model is told so. Negative: no bound.
	MaxMedia int

	// Window is how many tokens the conversation and a reply may have together; 0: what the model says ([Model]).
	Window int
	// CompactAt is the share of the window that a request may take before the older part of the conversation is replaced by a
	// summary, default [DefaultCompactAt]; negative: never, and where the window is not known, only once the provider has refused a
	// request for its length.
	CompactAt float64
	// SearchAt is the share of the window (of 128,000 tokens where that is not known) that the tools' definitions may take,
	// default [DefaultSearchAt]: if they take more, the model is given a tool to search the others with, and the definitions of
	// those that it has found or called. Ten tools are always given, and with a negative share all, as far as the model takes as
	// many ([Model]): of more than that, those that were found or called last.
	SearchAt float64

	// Mode says which tools run without Approve, default [ModeAsk].
	Mode Mode
	// Approve decides on a call. It is called from the goroutine of the run, one at a time; an error ends the run. A decision is on
	// the tool as it is in the question: where its server has changed it meanwhile, it does not count, and Approve is called again.
	Approve func(ctx context.Context, q Question) (Decision, error)
	// Allowed reports whether a tool has been allowed for good.
	Allowed func(tool string) bool
	// Server returns the server that has a tool, by the tool's name. nil: what a [Toolbox] says of it, else what stands before __ in it,
	// or nothing; where it cannot be known which server of a gateway that is, the tool's whole name, which no other tool has.
	Server func(tool string) string
}

func (o *Options) setDefaults() {
	if o.MaxSteps <= 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	if o.MaxResult == 0 {
		o.MaxResult = DefaultMaxResult
	}
	if o.MaxMedia == 0 {
		o.MaxMedia = DefaultMaxMedia
	}
	if o.CompactAt == 0 {
		o.CompactAt = DefaultCompactAt
	}
	if o.SearchAt == 0 {
		o.SearchAt = DefaultSearchAt
	}
	if o.Server == nil {
		o.Server = serverOf
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
	state atomic.Value // State

	running sync.Mutex // held by a run, whose all below is

	history      history
	listed       []mcp.Tool // in the order of their names; nil before the first list
	announced    []mcp.Tool // the list that the model was told of last
	unannounced  bool       // there is another one since
	offer        toolOffer
	stale        bool // there may be others than listed
	allowed      map[allowanceKey]bool
	results      resultReader
	factor       float64 // what the provider counts for an estimated token; 0: it has not said
	spent        Usage
	sampleUsage  usageMeter
	compactAbove int // above this estimate the conversation is compacted, since that did not help below it; 0: not known
}

// New returns an agent. It calls nothing yet. t may be nil: there are no tools then.
func New(m Model, t Tools, opts ...Options) *Agent {
	if t == nil {
		t = noTools{}
	}
	a := &Agent{model: m, tools: t, allowed: map[allowanceKey]bool{}}
	a.state.Store(Idle)
	if len(opts) > 1 {
		panic("agent: more than one options struct")
	}
	if len(opts) == 1 {
		a.opts = opts[0]
	}
	if o, ok := t.(interface{ Server(tool string) string }); ok && a.opts.Server == nil {
		a.opts.Server = o.Server
	}
	a.opts.setDefaults()
	if a.opts.Results != "" {
		a.results.openFolder(a.opts.Results)
	}
	a.results.maxResult = a.opts.MaxResult
	a.history = mendedHistory(a.opts.Messages)
	for i := range a.opts.Messages {
		if u := a.opts.Messages[i].Usage; u != nil {
			a.spent.accumulate(*u)
		}
	}
	return a
}

// ErrRunning is the error of a run that begins before another has ended.
var ErrRunning = errors.New("the agent is working on something else")

// State returns what the agent is doing, or has come to. It may be called at any time.
func (a *Agent) State() State { return a.state.Load().(State) }

// Messages returns the conversation so far. It must not be called while a run goes on.
func (a *Agent) Messages() []Message { return slices.Clone(a.history.messages) }

// SetModel has another model reply from now on. It must not be called while a run goes on.
func (a *Agent) SetModel(m Model) {
	a.model, a.factor, a.compactAbove = m, 0, 0 // each counts in its own way
	if a.offer.deferred && !a.tooManyTools() {
		a.offer = toolOffer{searchName: a.offer.searchName}
	} else if a.listed != nil {
		a.setTools(a.listed, nil)
	}
}

// SetMode changes [Options.Mode]. It must not be called while a run goes on, but by [Options.Approve].
func (a *Agent) SetMode(m Mode) { a.opts.Mode = m }

// Run says something to the model and yields what happens, until the model has answered, its reply was cut off, the budget is
// spent, or there is an error, which comes last. Without input the model replies to what was said last, and is told to go on where
// that was its own; it is an error where nothing was. When ctx ends, tools are told so, and what the model has said until then stays
// in the conversation, which can go on with another run. A caller that leaves the loop ends the run, too.
func (a *Agent) Run(ctx context.Context, input ...mcp.Content) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if !a.running.TryLock() {
			yield(nil, ErrRunning)
			return
		}
		defer a.running.Unlock()
		ctx, cancel := context.WithCancelCause(ctx)
		r := &run{Agent: a, ctx: ctx, cancel: cancel, yield: yield}
		defer r.calls.Wait() // once they are cancelled
		defer cancel(nil)
		r.runTask(input)
	}
}
