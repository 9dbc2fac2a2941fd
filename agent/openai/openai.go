// Package openai is the language models that speak OpenAI's chat completions: OpenAI's own, and those of DeepSeek, Qwen, Ollama,
// llama.cpp, vLLM, LM Studio and whatever else takes the same requests.
//
//	model := openai.New(openai.Options{Model: "qwen3", BaseURL: "http://localhost:11434/v1"})
//	a := agent.New(model, tools)
//
// What chat completions cannot take is changed as little as they demand, and said in words where it is left out: schemas (see the
// rules in schema.go), results that are not text (images and sounds follow the results as a message of the user), and names.
//
// The environment is not read: a program that wants OPENAI_API_KEY gives it.
package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// Defaults of [Options].
const (
	DefaultBaseURL  = "https://api.openai.com/v1"
	DefaultMaxMedia = 5 << 20
	DefaultRetries  = 4
)

// Bounds of OpenAI's own servers, which others do not have.
const (
	openAITools       = 128
	openAIDescription = 1024
)

// Options configure a [Model]. Only Model has no default.
type Options struct {
	// Model is the model's name, as the server knows it.
	Model string
	// BaseURL is what stands before /chat/completions, default [DefaultBaseURL]; one that ends in /chat/completions is taken without
	// it. Its query goes with every request.
	BaseURL string
	// Key is the API key; empty where the server wants none.
	Key string
	// Window is how many tokens a conversation and its reply may have together; 0: not known.
	Window int
	// MaxTokens bounds a reply, in tokens; 0: the server's own bound.
	MaxTokens int
	// HTTPClient sends the requests, default [http.DefaultClient]. Its Timeout bounds a reply as a whole.
	HTTPClient *http.Client
	// Retries is how often a request is sent again, where the connection fails or the server is busy (408, 409, 429, 5xx), after
	// the time that it asks for, or 0.5, 1, 2, 4 and from then on 8 seconds; default [DefaultRetries], negative: never. It is not
	// sent again where the server asks for more than two minutes, and no more than twice where there is no server at the address.
	Retries int
	// Extra are further members of each request's body, such as "reasoning_effort": "low". They win over what is there.
	Extra map[string]any

	// Reasoning says what the server gets back of what the model has thought, default [ReasoningWithTools].
	Reasoning Reasoning
	// MaxMedia bounds one image or sound, in bytes, default [DefaultMaxMedia]; negative: none is sent, for models that take text
	// only. Text says what has been left out.
	MaxMedia int
	// MaxTools bounds how many tools are offered, and MaxDescription the characters of a description, whose rest goes into the
	// description of the parameters. Default 128 and 1024 for OpenAI's own servers and Azure's, no bound for others; negative: no
	// bound.
	MaxTools, MaxDescription int
	// Strict has the server hold the model to the schemas of those tools that fit into its strict subset.
	Strict bool
	// ToolsInPrompt is for models that cannot call tools: the definitions stand in the prompt, and calls in the text of the reply.
	ToolsInPrompt bool

	// Warn gets what a user should know: once each, that a tool is left out or its schema loosened; each time, that the server's
	// filter has cut off a reply; once a reply, that a request is sent again. It may be called concurrently. nil: replies tell, as
	// [agent.Delta] has it.
	Warn func(text string)
}

func (o *Options) complete() {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	o.BaseURL = modelhttp.BaseURL(o.BaseURL, "/chat/completions")
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
	if o.Retries == 0 {
		o.Retries = DefaultRetries
	}
	if o.Reasoning == "" {
		o.Reasoning = ReasoningWithTools
	}
	if o.MaxMedia == 0 {
		o.MaxMedia = DefaultMaxMedia
	}
	if o.ofOpenAI() && o.MaxTools == 0 {
		o.MaxTools = openAITools
	}
	if o.ofOpenAI() && o.MaxDescription == 0 {
		o.MaxDescription = openAIDescription
	}
}

// ofOpenAI reports whether the server is OpenAI's own, or its twin at Azure.
func (o *Options) ofOpenAI() bool {
	u, err := url.Parse(o.BaseURL)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "openai.com" || strings.HasSuffix(host, ".openai.com") || strings.HasSuffix(host, ".openai.azure.com")
}

// Model is a model of a server. It is safe for concurrent use.
type Model struct {
	opts Options
	chat sdk.ChatCompletionService

	mu      sync.Mutex // guards all below
	warned  map[string]bool
	notices []string // that the next piece of a reply tells
}

var _ agent.Model = (*Model)(nil)

// New returns a model. It calls nothing yet: what is wrong with the options is an error of the first reply.
func New(o Options) *Model {
	o.complete()
	settings := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithHTTPClient(o.HTTPClient),
		option.WithMaxRetries(max(0, o.Retries)),
	}
	settings = append(settings, modelhttp.Query(o.BaseURL, option.WithQueryAdd)...)
	if o.Key != "" {
		settings = append(settings, option.WithAPIKey(o.Key))
	}
	for name, value := range o.Extra {
		settings = append(settings, option.WithJSONSet(name, value))
	}
	return &Model{opts: o, chat: sdk.NewChatCompletionService(settings...), warned: map[string]bool{}}
}

// Name is the model's name.
func (m *Model) Name() string { return m.opts.Model }

// Window implements [agent.Model].
func (m *Model) Window() int { return m.opts.Window }

// MaxTools is how many tools a conversation may offer, [Options.MaxTools]: those behind them are left out. 0: any number.
func (m *Model) MaxTools() int {
	if m.opts.ToolsInPrompt {
		return 0
	}
	return max(0, m.opts.MaxTools)
}

// Reply implements [agent.Model]. The reply's calls have arguments that are a JSON object; where the model has written something
// else, its text as a JSON string, which no tool takes: the tool's error tells the model. A call without an id is given one. A
// reply that has reached the bound of its length is a message with Cut, without the call that it was in.
func (m *Model) Reply(ctx context.Context, c agent.Conversation) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		if m.opts.Model == "" {
			yield(agent.Delta{}, errors.New("no model is named: give the name by which the server knows it"))
			return
		}
		request, w := m.request(c), m.watch(yield)
		if !m.notice(yield) {
			return
		}
		stream := m.chat.NewStreaming(ctx, request, option.WithMiddleware(w.Do))
		defer stream.Close()
		if w.Left() {
			return
		}
		r, empty := m.reply(c.Tools), true
		for stream.Next() {
			chunk := stream.Current()
			empty = empty && len(chunk.Choices) == 0
			for _, delta := range r.take(chunk) {
				if !yield(delta, nil) {
					return
				}
			}
		}
		err := stream.Err()
		if err == nil && empty {
			err = w.Empty()
		}
		if err != nil {
			yield(agent.Delta{}, m.explain(ctx, r.text.String(), w.Explain(err)))
			return
		}
		for _, delta := range r.rest() {
			if !yield(delta, nil) {
				return
			}
		}
		message, err := r.message()
		if err != nil {
			yield(agent.Delta{}, err)
			return
		}
		if !m.say(r.notice(), yield) {
			return
		}
		yield(agent.Delta{Message: message}, nil)
	}
}

// watch looks at what the server answers before the SDK does.
func (m *Model) watch(yield func(agent.Delta, error) bool) *modelhttp.Watch {
	return &modelhttp.Watch{Place: m.place(), Of: "chat completions", Advice: m.advice(), Retries: m.opts.Retries, Mask: m.hide,
		Refused: shape, Whole: events, Tell: func(text string) bool { return m.say(text, yield) }}
}

func (m *Model) request(c agent.Conversation) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{Model: m.opts.Model, StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)}}
	if m.opts.ToolsInPrompt {
		p.Messages = m.promptMessages(c)
	} else {
		p.Messages, p.Tools = m.messages(c), m.tools(c.Tools)
	}
	if len(p.Tools) > 0 && (c.ToolChoice == "required" || c.ToolChoice == "none") {
		p.ToolChoice.OfAuto = sdk.String(c.ToolChoice)
	}
	switch limit := int64(m.limit(c)); {
	case limit <= 0:
	case m.opts.ofOpenAI(): // whose newer models refuse the older name, which is the only one that others know
		p.MaxCompletionTokens = sdk.Int(limit)
	default:
		p.MaxTokens = sdk.Int(limit)
	}
	return p
}

// limit is the bound of a reply; 0: none.
func (m *Model) limit(c agent.Conversation) int {
	switch own := max(0, m.opts.MaxTokens); {
	case c.MaxTokens <= 0:
		return own
	case own == 0:
		return c.MaxTokens
	default:
		return min(own, c.MaxTokens)
	}
}

// warn says something, once.
func (m *Model) warn(text string) {
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

// say tells something of one reply. It reports whether somebody still listens.
func (m *Model) say(text string, yield func(agent.Delta, error) bool) bool {
	switch {
	case text == "":
		return true
	case m.opts.Warn == nil:
		return yield(agent.Delta{Notice: text}, nil)
	}
	m.opts.Warn(text)
	return true
}

// notice tells what no reply has told yet. It reports whether somebody still listens.
func (m *Model) notice(yield func(agent.Delta, error) bool) bool {
	m.mu.Lock()
	notices := m.notices
	m.notices = nil
	m.mu.Unlock()
	for _, text := range notices {
		if !yield(agent.Delta{Notice: text}, nil) {
			return false
		}
	}
	return true
}
