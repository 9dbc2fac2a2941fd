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
// Defaults of [Options].
const (
	DefaultMaxSteps  = 30
	DefaultMaxResult = 25_000
	DefaultMaxMedia  = 5 << 20
	DefaultCompactAt = 0.8
	DefaultSearchAt  = 0.1
)

// assumedWindow is the window, in tokens, of a model that does not say its own. It decides how
// many tools the model is given.
const assumedWindow = 128_000

// Options configure an [Agent]. The zero value is ready. It runs read-only tools only, since it
// cannot ask the user.
type Options struct {
	// System is the first text that the model is given.
	System string
	// Instructions returns text that follows System, such as the instructions of servers; nil for
	// none. It is called before each request, and also between runs. Its result should change
	// only when the tools change: any other change makes the provider read the conversation
	// again.
	Instructions func() string
	// Messages are an earlier conversation to continue. The agent mends them, see [Mend].
	Messages []Message
	// MaxSteps limits the model's replies in a run, default [DefaultMaxSteps]. Servers may use
	// the model (sampling) as often again.
	MaxSteps int
	// MaxResult limits the text of one result, in characters, default [DefaultMaxResult]. Of a
	// longer result the model gets the head and the tail, and a tool to read the rest, MaxResult
	// characters at a time. Negative: no limit.
	MaxResult int
	// Results is a folder for the texts of long results. The agent creates it when needed. To
	// continue a conversation, pass the folder of the first time. Empty: the texts stay in
	// memory.
	Results string
	// MaxMedia limits an image, a sound or another binary in a result, in bytes, default
	// [DefaultMaxMedia], and all binaries of one result to four times that. A text tells the
	// model about binaries that are left out. Negative: no limit.
	MaxMedia int

	// Window is the size of the model's context in tokens, for a conversation and its reply
	// together; 0: [Model] says.
	Window int
	// CompactAt is the share of the window above which the older part of the conversation is
	// replaced by a summary, default [DefaultCompactAt]; negative: never. If the window is
	// unknown, the conversation is compacted when the provider refuses it for its length.
	CompactAt float64
	// SearchAt is the share of the window (of 128,000 tokens if it is unknown) that the
	// definitions of tools may take, default [DefaultSearchAt]. If they take more, the model gets
	// a tool to search for tools, and the definitions of found and called tools. Up to
	// ten tools, and all tools with a negative share, are always given, unless the model takes
	// fewer ([Model]): then it gets the tools that it found or called last.
	SearchAt float64

	// Mode says which tools run without Approve, default [ModeAsk].
	Mode Mode
	// Approve decides on a call. It is called on the goroutine of the run, never concurrently; an
	// error ends the run. A decision applies to the tool as the question shows it: if the server
	// changes the tool meanwhile, Approve is called again. nil: calls that need approval are
	// refused.
	Approve func(ctx context.Context, q Question) (Decision, error)
	// Allowed reports whether the user has allowed a tool permanently. nil: no tool.
	Allowed func(tool string) bool
	// Server returns the server of a tool by the tool's name. nil: a [Toolbox] answers, or else
	// the part of the name before __ does. It is the whole name, which no other tool has, if the
	// name does not say which server of a gateway it is.
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

// Agent is a conversation of a model with a user and with tools. It runs one task at a time.
// [Agent.State] may be called concurrently, and no other method during a run.
type Agent struct {
	model Model
	tools Tools
	opts  Options
	state atomic.Value // State

	running sync.Mutex // held by a run; guards the fields below

	history      history
	listed       []mcp.Tool // in the order of their names; nil before the first list
	announced    []mcp.Tool // the list that the model knows
	unannounced  bool       // listed may differ from announced
	offer        toolOffer
	stale        bool // the server may have other tools than listed
	allowed      map[allowanceKey]bool
	results      resultReader
	factor       float64 // provider's tokens for one estimated token; 0: unknown
	spent        Usage
	sampleUsage  usageMeter
	compactAbove int // compacting is not tried again below this size, since it did not help; 0: no bound
}

// New returns an agent. It calls neither m nor t. A nil t means no tools, a nil o the defaults.
func New(m Model, t Tools, o *Options) *Agent {
	if t == nil {
		t = noTools{}
	}
	a := &Agent{model: m, tools: t, allowed: map[allowanceKey]bool{}}
	a.state.Store(Idle)
	if o != nil {
		a.opts = *o
	}
	if named, ok := t.(interface{ Server(tool string) string }); ok && a.opts.Server == nil {
		a.opts.Server = named.Server
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

// State returns what the agent is doing, or how its last run ended. It may be called at any time.
func (a *Agent) State() State { return a.state.Load().(State) }

// Messages returns the conversation so far. It must not be called during a run.
func (a *Agent) Messages() []Message { return slices.Clone(a.history.messages) }

// SetModel changes the model for the next runs. It must not be called during a run.
func (a *Agent) SetModel(m Model) {
	a.model, a.factor, a.compactAbove = m, 0, 0 // each counts in its own way
	if a.offer.deferred && !a.tooManyTools() {
		a.offer = toolOffer{searchName: a.offer.searchName}
	} else if a.listed != nil {
		a.setTools(a.listed, nil)
	}
}

// SetMode changes [Options.Mode]. During a run only [Options.Approve] may call it.
func (a *Agent) SetMode(m Mode) { a.opts.Mode = m }

// Run adds input to the conversation and yields the events of the run, until the model has
// answered, its reply was cut off, the steps are used up, or an error occurs, which comes last.
//
// Without input, the model replies to the last message; if that is its own, a message tells it to
// continue. An empty conversation is then an error. When ctx ends, the tools' contexts end, and the
// model's text so far stays in the conversation, which another run can continue. A caller that
// leaves the loop ends the run, too.
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
