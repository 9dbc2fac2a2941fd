package modelserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Messages is Anthropic's Messages API. A turn's reasoning becomes a thinking block. Its signature
// depends on the model, the text and the position, so that changed or moved blocks are detected.
// Quirks:
//
//	"adaptive"    thinking budgets are refused, as by models from 4.7 on
//	"bound"       signatures depend on the system prompt, as with newer models
//	"redacted"    reasoning is redacted
//	"interleaved" half of the reasoning precedes the text, the other half follows it
var Messages = Protocol{"POST /v1/messages", (*exchange).serveMessages}

type messagesRequest struct {
	Model     string         `json:"model"`
	MaxTokens *int           `json:"max_tokens"`
	System    contentBlocks  `json:"system"`
	Messages  []messagesTurn `json:"messages"`
	Tools     []messagesTool `json:"tools"`
	Thinking  struct {
		Type         string `json:"type"`
		BudgetTokens int    `json:"budget_tokens"`
	} `json:"thinking"`
	Stream bool `json:"stream"`
}

type messagesTurn struct {
	Role    string        `json:"role"`
	Content contentBlocks `json:"content"`
}

type messagesTool struct {
	Name         string          `json:"name"`
	Description  *string         `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl json.RawMessage `json:"cache_control"`
}

// contentBlocks is a list of blocks, or a string for a single text block.
type contentBlocks []contentBlock

type contentBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      contentBlocks   `json:"content"`
	IsError      bool            `json:"is_error"`
	Source       *imageSource    `json:"source"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	CacheControl json.RawMessage `json:"cache_control"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

func (b *contentBlocks) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return json.Unmarshal(data, (*[]contentBlock)(b))
	}
	*b = contentBlocks{{Type: "text"}}
	return json.Unmarshal(data, &(*b)[0].Text)
}

// contentText returns the text of the blocks, including tool results, and the types of images.
func (b contentBlocks) contentText() string {
	var texts []string
	for _, block := range b {
		switch {
		case block.Type == "text":
			texts = append(texts, block.Text)
		case block.Source != nil:
			texts = append(texts, "["+block.Source.MediaType+"]")
		case len(block.Content) > 0:
			texts = append(texts, block.Content.contentText())
		}
	}
	return strings.Join(texts, "\n")
}

// messagesError is an error in the API's format.
type messagesError struct {
	status  int
	Type    string `json:"type"`
	Message string `json:"message"`
}

var messagesErrorTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
}

func (f *Failure) toMessagesError() *messagesError {
	e := &messagesError{f.Status, f.Type, f.Message}
	if e.Type == "" {
		e.Type = messagesErrorTypes[f.Status]
	}
	return e
}

func (m *messagesError) errorBody() any {
	return map[string]any{"type": "error", "error": m, "request_id": "req_1"}
}

func (e *exchange) serveMessages() {
	e.w.Header().Set("Request-Id", "req_1")
	var req messagesRequest
	wrong := e.checkMessagesRequest(&req)
	if wrong != nil {
		e.refuseRequest(wrong.status, wrong.Message, wrong.errorBody())
		return
	}
	turn, err := e.nextTurn(req.Messages[len(req.Messages)-1].Content.contentText())
	switch {
	case err != nil:
		e.refuseRequest(http.StatusBadRequest, err.Error(), (&Failure{Status: 400, Message: err.Error()}).toMessagesError().errorBody())
	case turn.Fail != nil && !turn.Fail.Streamed:
		if turn.Fail.RetryAfter != "" {
			e.w.Header().Set("Retry-After", turn.Fail.RetryAfter)
		}
		e.writeJSON(turn.Fail.Status, turn.Fail.toMessagesError().errorBody())
	case req.Stream:
		e.streamMessages(&req, turn)
	default:
		e.writeMessage(&req, turn)
	}
}

// signedThinking returns a signed thinking block for position index of the message.
func (e *exchange) signedThinking(req *messagesRequest, thinking string, index int) map[string]any {
	if e.script.hasQuirk("redacted") {
		return map[string]any{"type": "redacted_thinking", "data": e.thinkingSignature(req, "", index)}
	}
	return map[string]any{"type": "thinking", "thinking": thinking, "signature": e.thinkingSignature(req, thinking, index)}
}

func (e *exchange) thinkingSignature(req *messagesRequest, thinking string, index int) string {
	system := ""
	if e.script.hasQuirk("bound") {
		system = req.System.contentText()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", req.Model, index, thinking, system))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// buildBlocks returns the turn's content. The arguments of calls need not be valid JSON.
func (e *exchange) buildBlocks(req *messagesRequest, turn *Turn) (blocks []map[string]any) {
	before, behind := turn.Reasoning, ""
	if e.script.hasQuirk("interleaved") {
		before, behind = before[:len(before)/2], before[len(before)/2:]
	}
	if before != "" {
		blocks = append(blocks, e.signedThinking(req, before, len(blocks)))
	}
	if turn.Text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": turn.Text})
	}
	if behind != "" {
		blocks = append(blocks, e.signedThinking(req, behind, len(blocks)))
	}
	for i := range turn.Calls {
		call := &turn.Calls[i]
		blocks = append(blocks, map[string]any{"type": "tool_use", "id": call.callID("toolu_", e.request.Turn, i), "name": call.Name, "input": json.RawMessage(call.Text())})
	}
	return blocks
}

func (t *Turn) messagesStopReason() string {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// tokenUsage divides the input tokens into uncached, written to the cache, and read from the cache.
func (req *messagesRequest) tokenUsage(u *Usage) map[string]any {
	if u == nil {
		u = &Usage{}
	}
	written := 0
	if req.countCacheMarks() > 0 {
		written = (u.Input - u.Cached) / 2
	}
	return map[string]any{
		"input_tokens": u.Input - u.Cached - written, "cache_creation_input_tokens": written, "cache_read_input_tokens": u.Cached,
		"output_tokens": u.Output, "output_tokens_details": map[string]int{"thinking_tokens": u.Reasoning},
	}
}

func (req *messagesRequest) newMessage(content []map[string]any) map[string]any {
	return map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": req.Model, "content": content,
		"stop_reason": nil, "stop_sequence": nil, "stop_details": nil}
}

func (e *exchange) writeMessage(req *messagesRequest, turn *Turn) {
	m := req.newMessage(e.buildBlocks(req, turn))
	m["stop_reason"], m["usage"] = turn.messagesStopReason(), req.tokenUsage(turn.Usage)
	if !turn.Cut {
		e.writeJSON(http.StatusOK, m)
		return
	}
	body, err := json.Marshal(m)
	if err != nil {
		panic(err) // scripts with invalid JSON arguments must stream
	}
	_, _ = e.w.Write(body[:len(body)/2]) // the client may have gone
	_ = http.NewResponseController(e.w).Flush()
	e.abortResponse()
}

// messagesEvent is an event of a stream.
type messagesEvent map[string]any

func (e *exchange) streamMessages(req *messagesRequest, turn *Turn) {
	e.startStream()
	send := func(m messagesEvent) { e.sendEvent(m["type"].(string), m) }
	start := req.newMessage([]map[string]any{})
	start["usage"] = req.tokenUsage(turn.Usage)
	start["usage"].(map[string]any)["output_tokens"] = 1
	send(messagesEvent{"type": "message_start", "message": start})
	send(messagesEvent{"type": "ping"})
	var events []messagesEvent
	for i, block := range e.buildBlocks(req, turn) {
		events = append(events, blockEvents(i, block)...)
	}
	if turn.Cut {
		events = events[:(len(events)+1)/2]
	}
	for _, event := range events {
		send(event)
	}
	switch {
	case turn.Cut:
		e.abortResponse()
	case turn.Fail != nil:
		send(messagesEvent{"type": "error", "error": turn.Fail.toMessagesError()})
	default:
		stop := map[string]any{"stop_reason": turn.messagesStopReason(), "stop_sequence": nil, "stop_details": nil}
		if turn.Stop == "refusal" {
			stop["stop_details"] = map[string]any{"type": "refusal", "category": "cyber", "explanation": "it may do harm"}
		}
		usage := req.tokenUsage(turn.Usage)
		send(messagesEvent{"type": "message_delta", "delta": stop, "usage": usage})
		send(messagesEvent{"type": "message_stop"})
	}
}

// blockEvents returns the events that stream a block: an empty block, then its content in pieces.
func blockEvents(index int, block map[string]any) []messagesEvent {
	delta := func(kind, key, piece string) messagesEvent {
		return messagesEvent{"type": "content_block_delta", "index": index, "delta": map[string]any{"type": kind, key: piece}}
	}
	start, deltas := map[string]any{"type": block["type"]}, []messagesEvent(nil)
	switch block["type"] {
	case "text":
		start["text"] = ""
		for _, piece := range splitText(block["text"].(string)) {
			deltas = append(deltas, delta("text_delta", "text", piece))
		}
	case "thinking":
		start["thinking"], start["signature"] = "", ""
		for _, piece := range splitText(block["thinking"].(string)) {
			deltas = append(deltas, delta("thinking_delta", "thinking", piece))
		}
		deltas = append(deltas, delta("signature_delta", "signature", block["signature"].(string)))
	case "tool_use":
		start["id"], start["name"], start["input"] = block["id"], block["name"], map[string]any{}
		deltas = append(deltas, delta("input_json_delta", "partial_json", ""))
		if input := block["input"].(json.RawMessage); !bytes.Equal(input, []byte("{}")) { // the API streams {} as no input
			for _, piece := range splitText(string(input)) {
				deltas = append(deltas, delta("input_json_delta", "partial_json", piece))
			}
		}
	default:
		start = block
	}
	events := append([]messagesEvent{{"type": "content_block_start", "index": index, "content_block": start}}, deltas...)
	return append(events, messagesEvent{"type": "content_block_stop", "index": index})
}
