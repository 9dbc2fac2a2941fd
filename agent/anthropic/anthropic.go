// Package anthropic implements [agent.Model] for the models of Anthropic, and for servers that
// speak the same Messages API.
//
//	model := anthropic.New(anthropic.Options{Model: "claude-sonnet-4-5", Key: os.Getenv("ANTHROPIC_API_KEY")})
//	a := agent.New(model, toolbox, nil)
//
// The package reads no environment variables and no files: [Options] holds all settings. A failed
// request is sent again if that may help, see [Options.Retries].
//
// The API refuses a whole request for one part that it does not take. So a conversation may be
// sent differently from how it was held:
//
//   - Results of tools come first in their message. An id or name of a call that another provider
//     made and this API refuses is replaced, in the call and in its result.
//   - Content that the model cannot read becomes a text that describes it: sounds, binary
//     resources, images of other types than JPEG, PNG, GIF and WebP or over [Options.MaxMedia],
//     and all images of a failed call.
//   - A tool whose name or schema cannot be made acceptable is left out, and [Options.Warn] says
//     why.
//   - Thoughts go back to the model that thought them, unchanged and in their places, and to no
//     other model. If the API stops accepting them, as after a change of the system prompt, they
//     are left out, and Warn says so. Thoughts at the end of a message are left out.
//
// The system prompt, the tools and the end of the conversation are marked for the provider's
// prompt cache.
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

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
)

// DefaultBaseURL is the default of [Options].BaseURL.
const DefaultBaseURL = "https://api.anthropic.com"

const (
	defaultMaxTokens = 16_000
	defaultWindow    = 200_000
	defaultMaxMedia  = 5 << 20 / 4 * 3 // the API takes 5 MiB of base64
	defaultRetries   = 4
)

// apiVersion is the revision of the API that this package speaks.
const apiVersion = "2023-06-01"

// Adaptive as [Options.Thinking] leaves it to the model how much it thinks. Models from 4.6 on
// can do that.
const Adaptive = -1

// minBudget is the smallest thinking budget that the API takes, in tokens.
const minBudget = 1024

// Options configure a model. Model is required, and Key if the server demands one.
type Options struct {
	// Model is the model's name.
	Model string
	// Key is the API key, which goes into the header X-Api-Key.
	Key string
	// BaseURL is the URL to which /v1/messages is added, default [DefaultBaseURL]. An ending /v1 or
	// /v1/messages is accepted and removed. The URL's query goes with every request.
	BaseURL string

	// Window is the size of the model's context in tokens; default 200,000, or unknown with
	// a BaseURL.
	Window int
	// MaxTokens limits a reply, in tokens, thinking not counted; default 16,000.
	MaxTokens int
	// Thinking is how many tokens a reply may think, at least 1,024, or [Adaptive]; 0 is the
	// model's default. A model that takes no budget is asked to think adaptively instead.
	Thinking int
	// MaxMedia limits an image, in bytes, default 3.75 MiB; negative: none is sent. A text
	// takes the place of an image that is left out.
	MaxMedia int
	// Retries is how often a request is sent again after a connection error or if the server is
	// busy (408, 409, 429, 5xx); default 4, negative: never. The delay is the time
	// that the server asks for, or 0.5, 1, 2, 4 and from then on 8 seconds. A request is not sent
	// again if the server asks for more than two minutes, and at most twice if nothing listens at
	// the address.
	Retries int

	// HTTPClient sends the requests, default [http.DefaultClient]. Its Timeout bounds a reply as a
	// whole.
	HTTPClient *http.Client
	// Warn gets messages for the user: the parts left out of a request, once for each tool and
	// reason, and once a reply that a request is sent again. It may be called concurrently. nil:
	// the messages come as [agent.Delta] notices.
	Warn func(text string)
}

func (o *Options) setDefaults() {
	o.BaseURL = modelhttp.BaseURL(o.BaseURL, "/v1/messages", "/v1")
	if strings.TrimRight(o.BaseURL, "/") == DefaultBaseURL {
		o.BaseURL = ""
	}
	if o.Window == 0 && o.BaseURL == "" {
		o.Window = defaultWindow
	}
	o.MaxTokens = cmp.Or(o.MaxTokens, defaultMaxTokens)
	o.MaxMedia = cmp.Or(o.MaxMedia, defaultMaxMedia)
	o.Retries = max(0, cmp.Or(o.Retries, defaultRetries))
	if o.Thinking > 0 {
		o.Thinking = max(o.Thinking, minBudget)
	}
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
}

// model implements [agent.Model].
type model struct {
	opts     Options
	client   *modelhttp.Client
	adaptive atomic.Bool // the model takes no thinking budget

	mu        sync.Mutex // guards the fields below
	prepared  map[string]preparedTool
	warned    map[string]bool
	notices   []string        // for the next reply to yield
	forgotten map[string]bool // reasoning that the API does not accept any more
}

// New returns a model of one server, which is safe for concurrent use and has the optional method
// Name. It sends nothing: a wrong key or name shows as the error of the first reply.
//
// If a reply has reached the limit of its length, the message has Cut set, and the call that was
// being written is left out. A reply that the provider's safeguards end is an error that wraps
// [ErrRefused], after the deltas so far.
func New(o Options) agent.Model {
	o.setDefaults()
	m := &model{opts: o, prepared: map[string]preparedTool{}, warned: map[string]bool{}, forgotten: map[string]bool{}}
	m.client = &modelhttp.Client{
		URL:    modelhttp.JoinURL(cmp.Or(o.BaseURL, DefaultBaseURL), "/v1/messages"),
		Header: http.Header{"Anthropic-Version": {apiVersion}}, HTTP: o.HTTPClient, Retries: o.Retries,
		Place: m.place(), Kind: "Anthropic messages", Advice: advice, Mask: m.maskSecrets, EventsOf: eventsOfMessage,
	}
	if o.Key != "" {
		m.client.Header.Set("X-Api-Key", o.Key)
	}
	m.adaptive.Store(slices.Contains(adaptiveModels, o.Model))
	return m
}

// adaptiveModels are models for which a thinking budget is deprecated, but not refused.
var adaptiveModels = []string{"claude-opus-4-6", "claude-mythos-preview"}

// Window implements [agent.Model].
func (m *model) Window() int { return max(0, m.opts.Window) }

// Name returns the model's name.
func (m *model) Name() string { return m.opts.Model }

// Reply implements [agent.Model], as [New] says.
func (m *model) Reply(ctx context.Context, c agent.Conversation) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		r := &reply{model: m, ctx: ctx, yield: yield}
		r.streamReply(c)
	}
}

// warnOnce tells the user text, unless it has been told before.
func (m *model) warnOnce(text string) {
	m.mu.Lock()
	known := m.warned[text]
	m.warned[text] = true
	if !known && m.opts.Warn == nil {
		m.notices = append(m.notices, text)
	}
	m.mu.Unlock()
	if !known && m.opts.Warn != nil {
		m.opts.Warn(text)
	}
}

// takeNotices returns the notices that no reply has yielded yet.
func (m *model) takeNotices() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	notices := m.notices
	m.notices = nil
	return notices
}
