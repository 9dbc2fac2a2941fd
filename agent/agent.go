package agent

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/internal/opentask"
	"github.com/dowel-mcp/dowel/mcp"
)

// assumedWindow is the size of the context window, in tokens, that is assumed for a model that does
// not report one. It only affects how many tools the model gets.
const assumedWindow = 128_000

// Options configure an [Agent]. The zero value is ready. It runs no tool of a server, since it
// trusts no server's annotations and cannot ask the user.
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
	// Results is a folder for the texts of long results. The agent creates it when needed. To
	// continue a conversation, pass the folder of the first time. Empty: the texts stay in
	// memory.
	Results string
	// Limits bound a run and what the model is given.
	Limits Limits
	// Budget is called on the goroutine of the run before each step, and before a server uses the
	// model, with the tokens that the run has used so far. Replies for which the provider reports
	// none are estimated. An error ends the run, or refuses the server's request. nil: no bound.
	Budget func(Usage) error

	// Mode says which tools run without Approve, default [ModeAsk].
	Mode Mode
	// Approve decides on a call. It is called on the goroutine of the run, never concurrently; an
	// error ends the run. A decision applies to the tool as the question shows it: if the server
	// changes the tool meanwhile, Approve is called again. nil: calls that need approval are
	// refused.
	Approve func(ctx context.Context, q Question) (Decision, error)
	// Allowed reports whether the user has allowed a tool permanently, in its present definition
	// (see [client.Client.CheckDefinitions]). nil: no tool.
	Allowed func(tool string) bool
	// TrustAnnotations reports whether the user believes the annotations of a server's tools. A
	// tool of another server needs an approval although it is annotated as read-only, since any
	// server can claim that. The name is empty if the tool's server is unknown. nil: no server.
	TrustAnnotations func(server string) bool
	// Effect returns the effect of a tool if its annotations do not apply, for example because they
	// have changed. It is called before each decision, except in the modes that no effect changes:
	// ModeNone and ModeAll. nil means [EffectOf].
	Effect func(tool *mcp.Tool) Effect
}

// DefaultMaxSteps is the default of [Limits].MaxSteps.
const DefaultMaxSteps = 30

// Limits bound a run and what the model is given. A zero field means its default.
type Limits struct {
	// MaxSteps is the largest number of the model's replies in a run, default [DefaultMaxSteps].
	// The servers together may use the model (sampling) for the same number of replies in addition.
	MaxSteps int
	// MaxResult is the length of the text of one result, in characters, default 25,000. Of a
	// longer result the model gets the head and the tail, and a tool to read the rest, MaxResult
	// characters at a time. Negative: no limit.
	MaxResult int
	// MaxMedia is the size of an image, a sound or another binary in a result, in bytes, default
	// 5 MiB; all binaries of one result may have four times that. A text tells the model about
	// binaries that are left out. Negative: no limit.
	MaxMedia int
	// CompactAt is the share of the window above which the older part of the conversation is
	// replaced by a summary, default 0.8; negative: never. If the window is unknown, the
	// conversation is compacted when the provider refuses it for its length.
	CompactAt float64
	// SearchAt is the share of the window (of 128,000 tokens if it is unknown) that the definitions
	// of tools may take, default 0.1. If they take more, the model gets a tool to search for tools,
	// and the definitions of the tools that it found or called. If there are at most ten tools, or
	// if SearchAt is negative, the model gets all definitions. If the model itself accepts fewer
	// tools ([Model]), it gets the tools that it found or called last.
	SearchAt float64
}

func (l *Limits) setDefaults() {
	l.MaxSteps = cmp.Or(max(l.MaxSteps, 0), DefaultMaxSteps)
	l.MaxResult = cmp.Or(l.MaxResult, 25_000)
	l.MaxMedia = cmp.Or(l.MaxMedia, 5<<20)
	l.CompactAt = cmp.Or(l.CompactAt, 0.8)
	l.SearchAt = cmp.Or(l.SearchAt, 0.1)
}

// Agent is a conversation of a model with a user and with tools. It runs one task at a time.
// No method may be called during a run, except as its comment allows.
type Agent struct {
	model Model
	tools Tools
	opts  Options

	running sync.Mutex // held by a run; guards the fields below

	history      history
	listed       []mcp.Tool // in the order of their names; nil before the first list
	announced    []mcp.Tool // the list that the model knows
	unannounced  bool       // listed may differ from announced
	offer        toolOffer
	stale        bool // the server may have other tools than listed
	allowed      map[allowanceKey]bool
	allowedTools map[string]mcp.Tool // by name: the definitions for which allowed counts
	results      resultReader
	resources    resourceState
	skills       skillState
	factor       float64 // provider's tokens for one estimated token; 0: unknown
	spent        Usage
	sampleUsage  usageMeter
	tasks        []opentask.Task
	compactAbove int // compacting is not tried again below this size, since it did not help; 0: no bound
}

// New returns an agent. It calls neither m nor t. A nil t means no tools, a nil o the defaults.
func New(m Model, t Tools, o *Options) *Agent {
	a := &Agent{model: m, tools: t, allowed: map[allowanceKey]bool{}, allowedTools: map[string]mcp.Tool{}}
	if o != nil {
		a.opts = *o
	}
	a.opts.Mode = cmp.Or(a.opts.Mode, ModeAsk)
	a.opts.Limits.setDefaults()
	if a.opts.Results != "" {
		a.results.openFolder(a.opts.Results)
	}
	a.results.maxResult = a.opts.Limits.MaxResult
	if holder, ok := t.(interface{ Resources() Resources }); ok {
		a.resources.source, a.resources.stale = holder.Resources(), true
	}
	if holder, ok := t.(interface{ skillSource() skillSource }); ok {
		a.skills.source, a.skills.stale = holder.skillSource(), true
	}
	a.history = mendedHistory(a.opts.Messages)
	a.tasks = findOpenTasks(a.history.messages)
	a.skills.unapproved = a.history.called(readSkillName) // of which only the earlier agent knew
	for i := range a.opts.Messages {
		if u := a.opts.Messages[i].Usage; u != nil {
			a.spent.accumulate(*u)
		}
	}
	return a
}

var errRunning = errors.New("the agent is already running: wait for the end of the run before the next one")

// Messages returns the conversation so far. It must not be called during a run.
func (a *Agent) Messages() []Message { return slices.Clone(a.history.messages) }

// SetModel changes the model for the next runs. It must not be called during a run.
func (a *Agent) SetModel(m Model) {
	a.model, a.factor, a.compactAbove = m, 0, 0 // each model counts tokens in its own way
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
			yield(nil, errRunning)
			return
		}
		defer a.running.Unlock()
		ctx, cancel := context.WithCancelCause(ctx)
		r := &run{Agent: a, ctx: ctx, cancel: cancel, yield: yield, background: newInbox()}
		defer r.background.closeInbox()
		defer r.calls.Wait() // cancel runs before this
		defer cancel(nil)
		r.runTask(input)
	}
}
