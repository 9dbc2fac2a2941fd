package anthropic

import (
	"bytes"
	"encoding/json"
)

// The types below are the members of the Messages API that this package sends and reads. Their
// order is the order on the wire, which must not change between requests: the API caches a
// conversation by its bytes.

// messagesRequest is the body of a request.
type messagesRequest struct {
	MaxTokens  int             `json:"max_tokens"`
	Messages   []turn          `json:"messages"`
	Model      string          `json:"model"`
	System     []block         `json:"system,omitzero"`
	Thinking   *thinkingConfig `json:"thinking,omitzero"`
	ToolChoice *toolChoice     `json:"tool_choice,omitzero"`
	Tools      []*tool         `json:"tools,omitzero"`
	Stream     bool            `json:"stream"`
}

// turn is one message of a conversation. It is never empty.
type turn struct {
	Content []block `json:"content"`
	Role    string  `json:"role"`
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// block is a piece of a message's content. Type says which members count. A block with raw is sent
// as raw, which holds the members that this package does not know, too.
type block struct {
	Text         string          `json:"text,omitzero"`
	ID           string          `json:"id,omitzero"`
	Input        json.RawMessage `json:"input,omitzero"`
	Name         string          `json:"name,omitzero"`
	Source       *imageSource    `json:"source,omitzero"`
	ToolUseID    string          `json:"tool_use_id,omitzero"`
	IsError      bool            `json:"is_error,omitzero"`
	CacheControl *cacheControl   `json:"cache_control,omitzero"`
	Content      []block         `json:"content,omitzero"`
	Type         string          `json:"type"`

	raw json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (b block) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type members block // without this method
	return encodeJSON(members(b)), nil
}

func textBlock(text string) block { return block{Text: text, Type: "text"} }

type imageSource struct {
	Data      string `json:"data"` // base64
	MediaType string `json:"media_type"`
	Type      string `json:"type"`
}

// cacheControl marks the end of a prefix of the request that the API keeps in its prompt cache.
type cacheControl struct {
	Type string `json:"type"`
}

var ephemeral = &cacheControl{Type: "ephemeral"}

type thinkingConfig struct {
	BudgetTokens int    `json:"budget_tokens,omitzero"`
	Display      string `json:"display,omitzero"`
	Type         string `json:"type"`
}

type toolChoice struct {
	Type string `json:"type"`
}

type tool struct {
	InputSchema  json.RawMessage `json:"input_schema"`
	Name         string          `json:"name"`
	CacheControl *cacheControl   `json:"cache_control,omitzero"`
	Description  string          `json:"description,omitzero"`
}

// streamEvent is one event of a streamed reply. Type says which members count.
type streamEvent struct {
	Type    string `json:"type"`
	Message struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"message"`
	Index        int             `json:"index"` // of the content block
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        eventDelta      `json:"delta"`
	Usage        json.RawMessage `json:"usage"`
}

// eventDelta is a change of a content block or, in the event message_delta, of the message.
type eventDelta struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Thinking    string          `json:"thinking"`
	Signature   string          `json:"signature"`
	PartialJSON string          `json:"partial_json"`
	Citation    json.RawMessage `json:"citation"`

	StopReason  string `json:"stop_reason"`
	StopDetails struct {
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
}

// tokenUsage counts tokens.
type tokenUsage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

// encodeJSON encodes v without escaping HTML. The members of a map are sorted, so that equal
// values are equal bytes, which the prompt cache needs.
func encodeJSON(v any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // v holds strings, numbers and JSON that has been parsed
	}
	return bytes.TrimSpace(out.Bytes())
}
