// Package anthropic is the models of Anthropic, and of servers that speak the same Messages API, as an [agent.Model].
//
//	model := anthropic.New(anthropic.Options{Model: "claude-sonnet-4-5", Key: os.Getenv("ANTHROPIC_API_KEY")})
//	a := agent.New(model, toolbox)
//
// It reads no environment variables and no files: all it uses is in [Options]. Requests go through the official SDK, and are tried
// again where that may help, as [Options.Retries] has it.
//
// A conversation is sent as the API takes it, which is where it may differ from what was said:
//
//   - results of tools come first in their message; a call's id or name that another provider has made, and this API does not take,
//     is replaced, in the call and in its result;
//   - what the model cannot read becomes a text that says what it was: sounds, binary resources, images of other types than JPEG,
//     PNG, GIF and WebP or over [Options.MaxMedia], and all images of a failed call;
//   - a tool whose name or schema cannot be made acceptable is left out, and [Options.Warn] says why;
//   - what the model has thought goes back to the model that has thought it, unchanged and in its place, and to no other. Where the
//     API does not take it any more, as after a change of the system prompt, it is left out, and Warn says so. It takes no thoughts
//     that nothing stands behind in their message.
//
// The system prompt, the tools and the end of the conversation are marked for the provider's prompt cache.
package anthropic

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
)

// Defaults of [Options].
const (
	DefaultBaseURL   = "https://api.anthropic.com"
	DefaultMaxTokens = 16_000
	DefaultWindow    = 200_000
	DefaultMaxMedia  = 5 << 20 / 4 * 3 // the API takes 5 MiB of base64
	DefaultRetries   = 4
)

// Adaptive as [Options.Thinking] leaves it to the model how much it thinks; models from 4.6 on can do that.
const Adaptive = -1

// minBudget is the least that the API takes as a budget, in tokens.
const minBudget = 1024

// Options configure a model. Model is required, and Key wherever the server asks for one.
type Options struct {
	Model string
	// Key goes into the header X-Api-Key.
	Key string
	// BaseURL is that of another server than [DefaultBaseURL]; the path v1/messages is added to it, where it does not end in /v1 or /v1/messages already, and
	// its query goes with every request.
	BaseURL string

	// Window is how many tokens the model takes; default [DefaultWindow], and not known where there is a BaseURL.
	Window int
	// MaxTokens bounds what a reply says, in tokens, thinking not counted; default [DefaultMaxTokens].
	MaxTokens int
	// Thinking is how many tokens a reply may think, at least 1,024, or [Adaptive]; 0 is the model's default. A model that takes no
	// budget is asked to think adaptively instead.
	Thinking int
	// MaxMedia bounds an image, in bytes, default [DefaultMaxMedia]; negative: none is sent. Text says what has been left out.
	MaxMedia int
	// Retries is how often a request is sent again, where the connection fails or the server is busy (408, 409, 429, 5xx), after
	// the time that it asks for, or 0.5, 1, 2, 4 and from then on 8 seconds; default [DefaultRetries], negative: never. It is not
	// sent again where the server asks for more than two minutes, and no more than twice where there is no server at the address.
	Retries int

	// HTTPClient default: [http.DefaultClient].
	HTTPClient *http.Client
	// Warn is told what has been left out of a request, once for each tool and reason, and once a reply that a request is sent again.
	// It may be called concurrently. nil: replies tell, as [agent.Delta] has it.
	Warn func(string)
}

func (o *Options) complete() {
	o.BaseURL = modelhttp.BaseURL(o.BaseURL, "/v1/messages", "/v1")
	if strings.TrimRight(o.BaseURL, "/") == DefaultBaseURL {
		o.BaseURL = ""
	}
	if o.Window == 0 && o.BaseURL == "" {
		o.Window = DefaultWindow
	}
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	o.MaxMedia = cmp.Or(o.MaxMedia, DefaultMaxMedia)
	o.Retries = max(0, cmp.Or(o.Retries, DefaultRetries))
	if o.Thinking > 0 {
		o.Thinking = max(o.Thinking, minBudget)
	}
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
}

// Model is a model of Anthropic's, or of a server that is like it. It is safe for concurrent use.
type Model struct {
	opts     Options
	messages sdk.MessageService
	adaptive atomic.Bool // the model takes no budget for its thoughts

	mu        sync.Mutex // guards all below
	prepared  map[string]prepared
	warned    map[string]bool
	notices   []string        // that the next piece of a reply tells
	forgotten map[string]bool // thoughts that the API does not take any more
}

var _ agent.Model = (*Model)(nil)

// New returns a model. It calls nothing yet: a wrong key or name is an error of the first reply. Errors say what to do; those of the
// API wrap the SDK's *Error.
func New(o Options) *Model {
	o.complete()
	// Not sdk.NewClient, which would look for keys in the environment and in files.
	options := []option.RequestOption{option.WithHTTPClient(o.HTTPClient), option.WithMaxRetries(o.Retries)}
	if o.BaseURL == "" {
		options = append(options, option.WithEnvironmentProduction())
	} else {
		options = append(options, option.WithBaseURL(o.BaseURL))
		options = append(options, modelhttp.Query(o.BaseURL, option.WithQueryAdd)...)
	}
	if o.Key != "" {
		options = append(options, option.WithAPIKey(o.Key))
	}
	m := &Model{opts: o, messages: sdk.NewMessageService(options...),
		prepared: map[string]prepared{}, warned: map[string]bool{}, forgotten: map[string]bool{}}
	m.adaptive.Store(slices.Contains(unbudgeted, o.Model))
	return m
}

// unbudgeted are models for which the SDK writes to standard error where a budget is asked for.
var unbudgeted = []string{"claude-opus-4-6", "claude-mythos-preview"}

// Window implements [agent.Model].
func (m *Model) Window() int { return max(0, m.opts.Window) }

// Name is the model's name.
func (m *Model) Name() string { return m.opts.Model }

// Reply implements [agent.Model]. A reply that has reached the bound of its length is a message with Cut, without the call that it
// was in; one that is refused is an error, [ErrRefused], behind what has been said.
func (m *Model) Reply(ctx context.Context, c agent.Conversation) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		r := &reply{Model: m, ctx: ctx, yield: yield}
		r.watch = &modelhttp.Watch{Place: m.place(), Of: "Anthropic messages", Advice: advice, Retries: m.opts.Retries, Mask: m.hide,
			Whole: events, Tell: r.trouble}
		r.run(c)
	}
}

// trouble tells what goes wrong while it does. It reports whether somebody still listens.
func (r *reply) trouble(text string) bool {
	if r.opts.Warn != nil {
		r.opts.Warn(text)
		return true
	}
	r.left = !r.yield(agent.Delta{Notice: text}, nil)
	return !r.left
}

// warn says something, unless it has been said before.
func (m *Model) warn(what string) {
	m.mu.Lock()
	said := m.warned[what]
	m.warned[what] = true
	if !said && m.opts.Warn == nil {
		m.notices = append(m.notices, what)
	}
	m.mu.Unlock()
	if !said && m.opts.Warn != nil {
		m.opts.Warn(what)
	}
}

// untold returns the notices that no reply has told yet.
func (m *Model) untold() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	notices := m.notices
	m.notices = nil
	return notices
}
