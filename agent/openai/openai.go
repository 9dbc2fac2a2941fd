// Package openai implements [agent.Model] for servers that speak OpenAI's chat completions: OpenAI
// itself, DeepSeek, Qwen, Gemini's compatible endpoint, Ollama, llama.cpp, vLLM, LM Studio and
// others.
//
//	model := openai.New(openai.Options{Model: "qwen3", BaseURL: "http://localhost:11434/v1"})
//	a := agent.New(model, tools, nil)
//
// These servers disagree in many details, and most refuse a whole conversation for one member that
// they do not take. So the package changes a conversation as little as all of them together
// demand: schemas (see schema.go), names and ids of calls, the order of roles. Images and sounds in
// results follow the results as a message of the user. Content that cannot be sent is described in
// words.
//
// The package reads no environment variables: a program that wants OPENAI_API_KEY passes it.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
)

// DefaultBaseURL is the default of [Options].BaseURL.
const DefaultBaseURL = "https://api.openai.com/v1"

const (
	defaultMaxMedia = 5 << 20
	defaultRetries  = 4
)

// Limits of OpenAI's own servers, which other servers do not have.
const (
	openAIMaxTools       = 128
	openAIMaxDescription = 1024 // characters
)

// Options configure a model. Only Model has no default.
type Options struct {
	// Model is the name by which the server knows the model.
	Model string
	// BaseURL is the URL to which /chat/completions is added, default [DefaultBaseURL]. An ending
	// /chat/completions is accepted and removed. The URL's query goes with every request.
	BaseURL string
	// Key is the API key; empty for a server that needs none.
	Key string
	// Window is the size of the model's context in tokens, for a conversation and its reply
	// together; 0: unknown.
	Window int
	// MaxTokens limits a reply, in tokens; 0: the server's own limit.
	MaxTokens int
	// HTTPClient sends the requests, default [http.DefaultClient]. Its Timeout bounds a reply as a
	// whole.
	HTTPClient *http.Client
	// Retries is how often a request is sent again after a connection error or if the server is
	// busy (408, 409, 429, 5xx); default 4, negative: never. The delay is the time
	// that the server asks for, or 0.5, 1, 2, 4 and from then on 8 seconds. A request is not sent
	// again if the server asks for more than two minutes, and at most twice if nothing listens at
	// the address.
	Retries int
	// Extra are further members of each request's body, such as "reasoning_effort": "low". They
	// replace members of the same name.
	Extra map[string]any

	// Reasoning says when a server gets the thoughts of its model back. They go back only to the
	// server that has sent them, and in the member in which they came. "with tools", the default,
	// sends them if tools are offered or have been called: DeepSeek refuses a conversation with
	// calls without their thoughts, GLM and Qwen work better with them, and other servers leave
	// them out of the prompt. "always" and "never" are for servers that need them or refuse
	// unknown members.
	Reasoning string
	// MaxMedia limits one image or sound, in bytes, default 5 MiB; negative: none is
	// sent, for models that take text only. A text tells the model about it.
	MaxMedia int
	// MaxTools limits the number of tools, and MaxDescription the characters of a tool's
	// description, the rest of which goes into the description of the parameters. Default 128 and
	// 1024 for OpenAI's own servers and Azure's, no limit for others; negative: no limit.
	MaxTools, MaxDescription int
	// Strict asks the server to hold the model to the schemas of those tools that fit into its
	// strict subset.
	Strict bool
	// ToolsInPrompt is for models that cannot call tools: the prompt holds the definitions, and
	// calls are read from the text of the reply.
	ToolsInPrompt bool

	// Warn gets messages for the user: that a tool is left out or its schema loosened, once each;
	// that the server's filter has cut off a reply, each time; that a request is sent again, once
	// a reply. It may be called concurrently. nil: the messages come as [agent.Delta] notices.
	Warn func(text string)
}

func (o *Options) setDefaults() {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	o.BaseURL = modelhttp.BaseURL(o.BaseURL, "/chat/completions")
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
	if o.Retries == 0 {
		o.Retries = defaultRetries
	}
	if o.Reasoning == "" {
		o.Reasoning = reasoningWithTools
	}
	if o.MaxMedia == 0 {
		o.MaxMedia = defaultMaxMedia
	}
	if o.isOpenAI() && o.MaxTools == 0 {
		o.MaxTools = openAIMaxTools
	}
	if o.isOpenAI() && o.MaxDescription == 0 {
		o.MaxDescription = openAIMaxDescription
	}
}

// isOpenAI reports whether the server is OpenAI's own or Azure's.
func (o *Options) isOpenAI() bool {
	u, err := url.Parse(o.BaseURL)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "openai.com" || strings.HasSuffix(host, ".openai.com") || strings.HasSuffix(host, ".openai.azure.com")
}

// model implements [agent.Model].
type model struct {
	opts   Options
	client *modelhttp.Client

	mu      sync.Mutex // guards the fields below
	warned  map[string]bool
	notices []string // for the next reply to yield
}

// New returns a model of one server, which is safe for concurrent use and has the optional methods
// Name and MaxTools. It sends nothing: wrong options show as the error of the first reply.
//
// The arguments of a reply's calls are JSON objects. If the model has written something else, they
// are its text as a JSON string, which no tool takes: the tool's error tells the model. A call
// without an id gets one. If the reply has reached the limit of its length, the message has Cut
// set, and the call that was being written is left out.
func New(o Options) agent.Model {
	o.setDefaults()
	m := &model{opts: o, warned: map[string]bool{}}
	m.client = &modelhttp.Client{
		URL: modelhttp.JoinURL(o.BaseURL, "/chat/completions"), Header: http.Header{}, HTTP: o.HTTPClient, Retries: o.Retries,
		Place: m.place(), Kind: "chat completions", Advice: o.baseURLAdvice(), Mask: m.maskSecrets, Final: isUnpaid, EventsOf: eventsOfCompletion,
	}
	if o.Key != "" {
		m.client.Header.Set("Authorization", "Bearer "+o.Key)
	}
	return m
}

// Name returns the model's name.
func (m *model) Name() string { return m.opts.Model }

// Window implements [agent.Model].
func (m *model) Window() int { return m.opts.Window }

// MaxTools returns how many tools a conversation may offer, [Options.MaxTools]; 0: any number.
func (m *model) MaxTools() int {
	if m.opts.ToolsInPrompt {
		return 0
	}
	return max(0, m.opts.MaxTools)
}

// Reply implements [agent.Model], as [New] says.
func (m *model) Reply(ctx context.Context, c agent.Conversation) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		switch message, err := m.requestReply(ctx, c, yield); {
		case errors.Is(err, errListenerLeft):
		case err != nil:
			yield(agent.Delta{}, err)
		default:
			yield(agent.Delta{Message: message}, nil)
		}
	}
}

// requestReply yields the deltas of a reply and returns its message.
func (m *model) requestReply(ctx context.Context, c agent.Conversation, yield func(agent.Delta, error) bool) (*agent.Message, error) {
	if m.opts.Model == "" {
		return nil, errors.New("no model is named: give the name by which the server knows it")
	}
	body, err := m.requestBody(c)
	if err != nil {
		return nil, err
	}
	if !m.yieldNotices(yield) {
		return nil, errListenerLeft
	}
	stream, err := m.client.Post(ctx, body, func(text string) bool { return m.tellUser(text, yield) })
	if errors.Is(err, modelhttp.ErrStopped) {
		return nil, errListenerLeft
	}
	if err != nil {
		return nil, m.explain(ctx, 0, err)
	}
	defer stream.Close()
	r := m.newReply(c.Tools)
	if err := r.readStream(ctx, stream, yield); err != nil {
		return nil, err
	}
	message, err := r.finalMessage()
	if err != nil {
		return nil, err
	}
	if !m.tellUser(r.filterNotice(), yield) {
		return nil, errListenerLeft
	}
	return message, nil
}

// requestBody returns the body of the request for a reply, with the members of Options.Extra.
func (m *model) requestBody(c agent.Conversation) (json.RawMessage, error) {
	body, err := encodeJSON(m.newRequest(c))
	if err != nil || len(m.opts.Extra) == 0 {
		return body, err
	}
	var members object
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	for name, value := range m.opts.Extra {
		if members[name], err = encodeJSON(value); err != nil {
			return nil, fmt.Errorf("the member %s of Extra is not JSON: %w", name, err)
		}
	}
	return encodeJSON(members)
}

func (m *model) newRequest(c agent.Conversation) chatRequest {
	r := chatRequest{Model: m.opts.Model, StreamOptions: streamOptions{IncludeUsage: true}, Stream: true}
	if m.opts.ToolsInPrompt {
		r.Messages = m.promptMessages(c)
	} else {
		r.Messages, r.Tools = m.chatMessages(c), m.toolDefinitions(c.Tools)
	}
	if len(r.Tools) > 0 && (c.ToolChoice == "required" || c.ToolChoice == "none") {
		r.ToolChoice = c.ToolChoice
	}
	if m.opts.isOpenAI() { // OpenAI's newer models refuse the older name, which is the only one that others know
		r.MaxCompletionTokens = m.maxTokens(c)
	} else {
		r.MaxTokens = m.maxTokens(c)
	}
	return r
}

// maxTokens returns the limit of a reply; 0: none.
func (m *model) maxTokens(c agent.Conversation) int {
	switch own := max(0, m.opts.MaxTokens); {
	case c.MaxTokens <= 0:
		return own
	case own == 0:
		return c.MaxTokens
	default:
		return min(own, c.MaxTokens)
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

// tellUser tells the user something about one reply. It reports whether the listener is still
// there.
func (m *model) tellUser(text string, yield func(agent.Delta, error) bool) bool {
	switch {
	case text == "":
		return true
	case m.opts.Warn == nil:
		return yield(agent.Delta{Notice: text}, nil)
	}
	m.opts.Warn(text)
	return true
}

// yieldNotices yields the notices of [model.warnOnce]. It reports whether the listener
// is still there.
func (m *model) yieldNotices(yield func(agent.Delta, error) bool) bool {
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
