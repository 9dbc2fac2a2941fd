package openai

import "encoding/json"

// The types below are the members of the chat completions API that this package sends and reads.
// Their order is the order on the wire, which must not change between requests: providers cache
// a conversation by its bytes.

// chatRequest is the body of a request. Options.Extra adds to it.
type chatRequest struct {
	Messages            []message     `json:"messages"`
	Model               string        `json:"model"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitzero"`
	MaxTokens           int           `json:"max_tokens,omitzero"`
	StreamOptions       streamOptions `json:"stream_options"`
	ToolChoice          string        `json:"tool_choice,omitzero"`
	Tools               []tool        `json:"tools,omitzero"`
	Stream              bool          `json:"stream"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// message is a turn of any role. Content is a string or a []part, nil for none.
type message struct {
	Content    any        `json:"content,omitzero"`
	ToolCalls  []toolCall `json:"tool_calls,omitzero"`
	ToolCallID string     `json:"tool_call_id,omitzero"`
	Role       string     `json:"role"`
	// The thoughts of the assistant, in the member in which the server has sent them.
	ReasoningContent *string `json:"reasoning_content,omitzero"`
	Reasoning        *string `json:"reasoning,omitzero"`
}

type toolCall struct {
	ID           string          `json:"id"`
	Function     calledFunction  `json:"function"`
	Type         string          `json:"type"`
	ExtraContent json.RawMessage `json:"extra_content,omitzero"`
}

type calledFunction struct {
	Arguments string `json:"arguments"`
	Name      string `json:"name"`
}

// part is a piece of a user's message. One of Text, ImageURL and InputAudio is set.
type part struct {
	Text       *string     `json:"text,omitzero"`
	ImageURL   *imageURL   `json:"image_url,omitzero"`
	InputAudio *inputAudio `json:"input_audio,omitzero"`
	Type       string      `json:"type"`
}

type imageURL struct {
	URL string `json:"url"`
}

type inputAudio struct {
	Data   string `json:"data"` // base64
	Format string `json:"format"`
}

func textPart(text string) part { return part{Text: &text, Type: "text"} }

// tool is the definition of a function that the model may call.
type tool struct {
	Function function `json:"function"`
	Type     string   `json:"type"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict,omitzero"`
}

// chunk is one event of a streamed reply.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	Content          string     `json:"content"`
	Refusal          string     `json:"refusal"`
	ReasoningContent *string    `json:"reasoning_content"` // DeepSeek, Qwen
	Reasoning        *string    `json:"reasoning"`         // vLLM, Ollama, OpenRouter
	ToolCalls        []fragment `json:"tool_calls"`
}

// fragment is a piece of a tool call.
type fragment struct {
	Index        *int            `json:"index"`
	ID           string          `json:"id"`
	Function     calledFunction  `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content"`
}

// usage counts tokens. The members for cached tokens are OpenAI's, DeepSeek's and Moonshot's.
type usage struct {
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	PromptCacheHitTokens int `json:"prompt_cache_hit_tokens"`
	CachedTokens         int `json:"cached_tokens"`
}
