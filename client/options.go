package client

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Defaults of [Limits].
const (
	defaultConnect   = 60 * time.Second
	defaultInstall   = 10 * time.Minute
	defaultMaxRounds = 16
)

// Options configure a [Client]. The zero value is ready.
//
// The functions are called from the client's goroutines. They must not call [Client.Close], which
// waits for them.
type Options struct {
	// Name is how the user knows the server. Questions and errors carry it. If it is empty, the
	// name that the server gives itself is used.
	Name string
	// Info is how the client introduces itself. If its Name is empty, dowel's own is used.
	Info mcp.Implementation
	// Answers holds the functions that answer the server's questions.
	Answers Answers
	// Extensions are the extensions that the client understands.
	Extensions []mcp.Extension

	// OnNotification handles notifications that belong neither to a call nor to a watch, one at a
	// time, in their order of arrival. With the answer to a call, a server may send notifications
	// of other kinds than progress and log messages: it handles these, too.
	OnNotification func(mcp.Notification)
	// OnLog handles the log messages that belong to no call, and the messages of calls without an
	// OnLog of their own.
	OnLog func(mcp.LoggingMessageParams)
	// LogLevel is the least severe level that the server is asked for. The default is info if OnLog
	// is set, else none.
	LogLevel mcp.LoggingLevel
	// OnState is called with each state of the connection: in order, one at a time.
	OnState func(State)

	// HTTP configures the connection to a URL.
	HTTP HTTP
	// Limits bound connecting and calls. [CallOptions] can replace them for one call.
	Limits Limits
	// Restart says how a lost connection is restored.
	Restart Restart
	// Wire configures how messages are exchanged; few programs set it.
	Wire Wire

	// StrictCapabilities refuses each call for which the server has not declared the capability.
	// The error wraps [errors.ErrUnsupported]. By default only lists are refused, because many
	// servers forget to declare the rest. [Client.RoundTrip] checks nothing.
	StrictCapabilities bool
	// NoCache asks the server each time, even if an earlier result may be reused.
	NoCache bool
	// NoOutputCheck accepts structured results that do not match the tool's output schema.
	NoOutputCheck bool
	// Logger takes messages that belong to no call. nil means slog.Default.
	Logger *slog.Logger
}

// Answers holds the functions that answer a server's questions. The client declares the capability
// of each function that is set, and no other.
type Answers struct {
	// Elicit puts a question of the server to the user. It is called for one question at a time,
	// since the user reads one at a time. Its context ends with the call that led to the question,
	// and carries the call's values if the transport knows which call that was. A nil result
	// without an error counts as cancel.
	Elicit func(ctx context.Context, q *ElicitRequest) (*mcp.ElicitResult, error)
	// ElicitURL says that Elicit can also ask the user to visit a URL (mode url): it shows the
	// whole URL, asks for consent, and fetches nothing before.
	ElicitURL bool
	// Sample lets the server use the client's model.
	Sample func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	// SampleTools says that Sample understands tools and toolChoice.
	SampleTools bool
	// Roots returns the folders that the server may work on ([FixedRoots]). Their URIs are file
	// URIs with absolute paths without "..".
	Roots func(ctx context.Context) ([]mcp.Root, error)
	// Requests answer other methods ([OnRequest]). If two have the same method, the first one
	// answers.
	Requests []RequestHandler
	// Handler answers each request that no field above answers.
	Handler mcp.Handler
	// Capabilities are declared in addition: the methods that Requests and Handler answer, or what
	// the functions above understand further, such as sampling with context.
	Capabilities mcp.ClientCapabilities
}

// Limits bound how long connecting and calls may take. In [CallOptions], a zero field takes the
// client's limit.
type Limits struct {
	// Connect bounds connecting, and how long a call waits for a connection. The default is
	// 60 s; a negative value means no limit. The time of a user's login does not count, for none of
	// the limits.
	Connect time.Duration
	// Start replaces Connect if the target is a command: it bounds the time from the start of the
	// server's process until the server is ready, and how long a call waits for that. The default
	// is Connect; a negative value means no limit.
	//
	// The time in which a package runner, such as npx, uvx or docker run, installs the server does
	// not count: Install bounds it. Nor does the time in which the process waits for the user to
	// log in, as mcp-remote does.
	Start time.Duration
	// Install bounds the time in which a package runner installs the server, in a dial. The default
	// is 10 minutes; a negative value means no limit. On Linux dowel sees when the runner starts
	// the server's own process. On other systems all the time until the server is ready counts as
	// an install, so a server that hangs fails after Install only.
	Install time.Duration
	// Idle bounds the time between two signs of life of a call; its notifications are signs of
	// life. A positive value also asks the server for progress. The time in which the client
	// answers a question does not count. A negative value means no limit.
	//
	// The default is one hour, and up to a minute more. It bounds each request of a call, so that a
	// call that waits for a task may take longer. It is far above the time of honest work: set a
	// limit that fits your servers.
	Idle time.Duration
	// Total bounds a call, whatever signs of life it gives. The time in which the client answers a
	// question does not count. A negative value means no limit. The default is 24 hours, and up to
	// a minute more, for each request of a call.
	Total time.Duration
	// MaxRounds bounds how often one call may ask for input. The default is 16.
	MaxRounds int
}

// HTTP configures the connection to a URL.
type HTTP struct {
	// Client makes the requests; see [streamable.URL]. nil means a client of dowel's own. Its
	// Transport may be an auth.Transport, which logs in. If it adds other credentials that depend
	// on the context of a call, set [Options.NoCache]: only fields of Header, and the login of a
	// Transport that has a method LoginID() string, keep the results of different users apart.
	Client *http.Client
	// Header returns fields to send with each request, such as credentials. ctx has the values of
	// the call. A private result of the cache is used only for calls with the same fields; to find
	// them, Header is also called for calls that the cache then answers.
	Header func(ctx context.Context) (http.Header, error)
}

// Wire configures how messages are exchanged with a server. The zero value suits every server that
// follows the protocol.
type Wire struct {
	// Revision pins the protocol revision, one of [mcp.Revisions]. If it is empty, the client finds
	// it out.
	Revision mcp.Revision
	// SerializeAsks runs calls to a legacy server one at a time if its questions could not be told
	// apart otherwise.
	SerializeAsks bool
	// Verdicts remembers the eras of endpoints. nil means a memory that all clients of the process
	// share.
	Verdicts *transport.Verdicts
	// Tap sees the raw frames.
	Tap transport.Tap
}

// CallOptions configure one call. The zero value takes the client's options. If a call is given
// several, they are merged: of the structs that set a field, the last one wins.
type CallOptions struct {
	// OnProgress takes the call's progress: on the goroutine of the call, in order, never after it
	// has returned.
	OnProgress func(mcp.ProgressParams)
	// OnLog takes the call's log messages, like OnProgress. If the client cannot tell to which call
	// a message belongs, it goes to [Options.OnLog].
	OnLog func(mcp.LoggingMessageParams)
	// LogLevel is the least severe level that is asked for. The default is the client's, or info if
	// OnLog is set.
	LogLevel mcp.LoggingLevel
	// Limits replace the client's limits. If Start is 0, Connect bounds the start of a command too.
	Limits Limits
	// Meta is added to the request's _meta.
	Meta mcp.Meta
	// NoCache neither takes the result from the cache nor stores it there.
	NoCache bool
}

func (o *Options) setDefaults(to target) {
	o.Restart = o.Restart.withDefaults()
	if to.oneShot {
		o.Restart.Max = 0
	}
	if o.Wire.Verdicts == nil && to.isPrivate {
		o.Wire.Verdicts = new(transport.Verdicts)
	}
	if o.Limits.Connect == 0 {
		o.Limits.Connect = defaultConnect
	}
	if o.Limits.Install == 0 {
		o.Limits.Install = defaultInstall
	}
	if o.Limits.MaxRounds <= 0 {
		o.Limits.MaxRounds = defaultMaxRounds
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnLog != nil && o.LogLevel == "" {
		o.LogLevel = mcp.LevelInfo
	}
}

// transportOptions returns the options that package transport needs.
func (o *Options) transportOptions() transport.ClientOptions {
	return transport.ClientOptions{
		Info:          o.Info,
		Capabilities:  o.declaredCapabilities(),
		Extensions:    mcpwire.WithTasks(o.Extensions),
		Revision:      o.Wire.Revision,
		Verdicts:      o.Wire.Verdicts,
		SerializeAsks: o.Wire.SerializeAsks,
		Logger:        o.Logger,
		Tap:           o.Wire.Tap,
	}
}

// declaredCapabilities returns the capabilities of the functions that are set, and
// Answers.Capabilities.
func (o *Options) declaredCapabilities() mcp.ClientCapabilities {
	c := mcp.ClientCapabilities{Extensions: mcpwire.Vocabulary(o.Extensions).Declare()}
	if o.Answers.Elicit != nil {
		c.Elicitation = &mcp.ElicitationCapability{Form: &struct{}{}}
		if o.Answers.ElicitURL {
			c.Elicitation.URL = &struct{}{}
		}
	}
	if o.Answers.Sample != nil {
		c.Sampling = &mcp.SamplingCapability{}
		if o.Answers.SampleTools {
			c.Sampling.Tools = &struct{}{}
		}
	}
	if o.Answers.Roots != nil {
		c.Roots = &mcp.RootsCapability{}
	}
	return mcpwire.MergeCapabilities(c, o.Answers.Capabilities)
}
