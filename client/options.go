package client

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Defaults of [Options].
const (
	DefaultConnect   = 60 * time.Second
	DefaultMaxRounds = 16
)

// Options configure a [Client]. The zero value is ready.
//
// The functions are called from the client's goroutines. They must not call [Client.Close], which waits for them.
type Options struct {
	// Name is how the user knows the server. Questions and errors carry it. Empty: what the server calls itself.
	Name string
	// Info is how the client names itself; where its Name is empty, dowel's own.
	Info mcp.Implementation

	// Elicit puts a question of the server to the user. nil: the server is told that nobody can be asked. It is called
	// for one question at a time, since there is one human; ctx ends when the call that led to the question does, and
	// carries its values where the transport knows which call that was. A nil result without an error counts as cancel.
	Elicit func(ctx context.Context, q *ElicitRequest) (*mcp.ElicitResult, error)
	// ElicitURL says that Elicit can also ask the user to visit a URL (mode url): it shows the whole URL, asks for
	// consent, and fetches nothing before.
	ElicitURL bool
	// Sample lets the server use the client's model. nil: the server is told that there is none.
	Sample func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	// SampleTools says that Sample understands tools and toolChoice.
	SampleTools bool
	// Roots tells the server what it may work on ([FixedRoots]). nil: the server is told that there are none to ask for.
	Roots func(ctx context.Context) ([]mcp.Root, error)
	// Requests answer what servers ask beyond the three above ([OnRequest]): the first one of the method does.
	Requests []RequestHandler
	// Handler answers what is left, raw: everything, where Elicit, Sample, Roots and Requests are nil. It is not consulted
	// for a method that has its own function.
	Handler mcp.Handler
	// Capabilities are declared beside those of Elicit, Sample, Roots and Extensions: what Requests and Handler answer, or
	// what those functions understand further, such as sampling with context.
	Capabilities mcp.ClientCapabilities
	// Extensions are what the client understands beyond the core.
	Extensions []mcp.Extension

	// Notifications take what the server sends outside of calls and watches ([OnNotification]).
	Notifications []NotificationHandler
	// OnLog takes log messages that belong to no call, and those of calls without an OnLog of their own.
	OnLog func(mcp.LoggingMessageParams)
	// LogLevel is the least severe level that is asked for. Empty: info where OnLog is set, else none.
	LogLevel mcp.LoggingLevel
	// OnState is told of every state of the connection: in order, one at a time.
	OnState func(State)

	// HTTPClient makes the requests to a URL; see [streamable.URL].
	HTTPClient *http.Client
	// Header returns fields that go along with each request to a URL, credentials for one.
	Header func(ctx context.Context) (http.Header, error)

	// Connect bounds connecting, and how long calls wait for a connection. 0: [DefaultConnect]; negative: no limit.
	Connect time.Duration
	// Start takes the place of Connect where the target is a command: it bounds the time from the start of the server's
	// process until the server is ready, and how long calls wait for that. 0: Connect.
	Start time.Duration
	// Idle bounds how long a call may stay without a sign of life: a notification of the call is one. 0: no limit.
	Idle time.Duration
	// Total bounds a call. 0: no limit. Neither limit counts the time that answering a question of the server takes.
	Total time.Duration
	// MaxRounds bounds how often one call may ask for input. 0: [DefaultMaxRounds].
	MaxRounds int
	// Restart says how a lost connection is restored.
	Restart Restart

	// NoCache asks the server each time, even where its results may be reused.
	NoCache bool
	// NoOutputCheck accepts structured results that do not match the tool's output schema.
	NoOutputCheck bool

	// Revision pins the protocol revision, one of [mcp.Revisions]. Empty finds out.
	Revision mcp.Revision
	// ProbeTimeout is how long a server may be silent about the probe for its era; see [transport.ClientOptions].
	ProbeTimeout time.Duration
	// SerializeAsks runs calls to a legacy server one at a time, where its questions could not be told apart otherwise.
	SerializeAsks bool
	// Verdicts remembers the eras of endpoints. nil: a memory shared by all clients of the process.
	Verdicts *transport.Verdicts
	// Tap sees the raw frames.
	Tap transport.Tap
	// Logger takes what belongs to no call. nil: slog.Default.
	Logger *slog.Logger
}

// CallOptions configure one call. The zero value takes the client's options.
type CallOptions struct {
	// OnProgress takes the call's progress: on the goroutine of the call, in order, never after it has returned.
	OnProgress func(mcp.ProgressParams)
	// OnLog takes the call's log messages, like OnProgress. Where a server's messages cannot be told apart, they go to
	// [Options.OnLog].
	OnLog func(mcp.LoggingMessageParams)
	// LogLevel is the least severe level that is asked for. Empty: the client's; info where OnLog is set.
	LogLevel mcp.LoggingLevel
	// Idle and Total are limits like those of [Options]. 0: the client's; negative: no limit.
	Idle, Total time.Duration
	// Connect bounds how long the call waits for a connection, and Start for one to a command, which may have to be started
	// again. 0: the client's, and for Start first Connect; negative: no limit.
	Connect, Start time.Duration
	// Meta is added to the request's _meta.
	Meta mcp.Meta
	// NoCache neither takes the result from the cache nor keeps it.
	NoCache bool
}

// only returns the one options struct that may be given.
func only[T any](opts []T) (o T) {
	if len(opts) > 1 {
		panic("client: more than one options struct")
	}
	if len(opts) == 1 {
		o = opts[0]
	}
	return o
}

func (o *Options) complete(to target) {
	o.Restart = o.Restart.complete()
	if to.once {
		o.Restart.Max = 0
	}
	if o.Verdicts == nil && to.own {
		o.Verdicts = new(transport.Verdicts)
	}
	if o.Connect == 0 {
		o.Connect = DefaultConnect
	}
	if o.MaxRounds <= 0 {
		o.MaxRounds = DefaultMaxRounds
	}
	if o.Verdicts == nil {
		o.Verdicts = new(transport.ClientOptions).Memory()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnLog != nil && o.LogLevel == "" {
		o.LogLevel = mcp.LevelInfo
	}
}

// transport returns what the edge needs of the options.
func (o *Options) transport() transport.ClientOptions {
	vocabulary := mcp.NewVocabulary(o.Extensions...)
	return transport.ClientOptions{
		Info:          o.Info,
		Capabilities:  o.capabilities(vocabulary),
		Vocabulary:    vocabulary,
		Revision:      o.Revision,
		ProbeTimeout:  o.ProbeTimeout,
		Verdicts:      o.Verdicts,
		SerializeAsks: o.SerializeAsks,
		Logger:        o.Logger,
		Tap:           o.Tap,
	}
}

// capabilities declares what is answered and nothing else.
func (o *Options) capabilities(v *mcp.Vocabulary) mcp.ClientCapabilities {
	c := mcp.ClientCapabilities{Extensions: v.Declare()}
	if o.Elicit != nil {
		c.Elicitation = &mcp.ElicitationCapability{Form: &struct{}{}}
		if o.ElicitURL {
			c.Elicitation.URL = &struct{}{}
		}
	}
	if o.Sample != nil {
		c.Sampling = &mcp.SamplingCapability{}
		if o.SampleTools {
			c.Sampling.Tools = &struct{}{}
		}
	}
	if o.Roots != nil {
		c.Roots = &mcp.RootsCapability{}
	}
	return c.And(o.Capabilities)
}
