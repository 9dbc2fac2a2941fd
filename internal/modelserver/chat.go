package modelserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// Chat is OpenAI's chat completions API, as spoken by OpenAI and compatible servers. Quirks:
//
//	"openai"      OpenAI's own limits: 128 tools, descriptions of 1024 characters
//	"thinking"    with tools, assistant messages must return reasoning_content, as for DeepSeek
//	"reasoning"   the field is named reasoning, as in vLLM
//	"signed"      a reply's first call has a signature that must be returned, as for Gemini
//	"noTools"     tools are refused, as by Ollama for a model without tool support
//	"noIDs"       calls have no id
//	"wholeCalls"  each call is sent in one piece with index 0, as by Ollama
//	"interleaved" the fragments of several calls are mixed
var Chat = Protocol{"POST /v1/chat/completions", (*exchange).serveChat}

type chatRequest struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	Tools         []chatTool    `json:"tools"`
	Stream        bool          `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type chatMessage struct {
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content,omitzero"`
	ReasoningContent *string         `json:"reasoning_content,omitzero"`
	ToolCalls        []chatCall      `json:"tool_calls,omitzero"`
	ToolCallID       string          `json:"tool_call_id,omitzero"`
}

type chatCall struct {
	Index    *int   `json:"index,omitzero"` // in deltas only
	ID       string `json:"id,omitzero"`
	Type     string `json:"type,omitzero"`
	Function struct {
		Name      string `json:"name,omitzero"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content,omitzero"`
}

// expectedSignature returns the signature of a call under the "signed" quirk.
func (c *chatCall) expectedSignature() json.RawMessage {
	return json.RawMessage(`{"google":{"thought_signature":"` + c.Function.Name + ` is signed"}}`)
}

// chatError is an error in the API's format.
type chatError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func invalidRequest(message, param, code string) *chatError {
	e := &chatError{status: http.StatusBadRequest, Message: message, Type: "invalid_request_error"}
	if param != "" {
		e.Param = &param
	}
	if code != "" {
		e.Code = &code
	}
	return e
}

func (e *exchange) refuseChat(c *chatError) {
	e.refuseRequest(c.status, c.Message, map[string]any{"error": c})
}

func (e *exchange) serveChat() {
	var req chatRequest
	if err := json.Unmarshal(e.body, &req); err != nil {
		e.refuseChat(invalidRequest("We could not parse the JSON body of your request: "+err.Error(), "", ""))
		return
	}
	if wrong := e.checkChat(&req); wrong != nil {
		e.refuseChat(wrong)
		return
	}
	turn, err := e.nextTurn(req.lastText())
	if err != nil {
		e.refuseChat(invalidRequest(err.Error(), "", "script"))
		return
	}
	switch {
	case turn.Fail != nil && !turn.Fail.Streamed:
		if turn.Fail.RetryAfter != "" {
			e.w.Header().Set("Retry-After", turn.Fail.RetryAfter)
		}
		e.writeJSON(turn.Fail.Status, map[string]any{"error": turn.Fail.toChatError()})
	case req.Stream:
		e.streamChat(&req, turn)
	default:
		e.writeJSON(http.StatusOK, e.buildChatReply(&req, turn))
	}
}

func (f *Failure) toChatError() *chatError {
	c := &chatError{Message: f.Message, Type: f.Type}
	if f.Code != "" {
		c.Code = &f.Code
	}
	return c
}

// lastText returns the text of all messages after the model's last reply.
func (req *chatRequest) lastText() string {
	var texts []string
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role != "assistant"; i-- {
		if req.Messages[i].Role != "system" {
			texts = append([]string{req.Messages[i].contentText()}, texts...)
		}
	}
	return strings.Join(texts, "\n")
}

// contentText returns the content as text: a string, the texts of parts, and the JSON of other
// parts.
func (m *chatMessage) contentText() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []json.RawMessage
	_ = json.Unmarshal(m.Content, &parts) // validated before
	var texts []string
	for _, raw := range parts {
		var part struct{ Text *string }
		if json.Unmarshal(raw, &part) == nil && part.Text != nil {
			texts = append(texts, *part.Text)
		} else {
			texts = append(texts, string(raw))
		}
	}
	return strings.Join(texts, "\n")
}

func (e *exchange) chatCalls(turn *Turn) (calls []chatCall) {
	for i := range turn.Calls {
		call := chatCall{Type: "function"}
		if !e.script.hasQuirk("noIDs") {
			call.ID = turn.Calls[i].callID("call_", e.request.Turn, i)
		}
		call.Function.Name, call.Function.Arguments = turn.Calls[i].Name, compactJSON(turn.Calls[i].Text())
		if i == 0 && e.script.hasQuirk("signed") {
			call.Extra = call.expectedSignature()
		}
		calls = append(calls, call)
	}
	return calls
}

// compactJSON removes the white space of the script's file from JSON. It returns other text
// unchanged.
func compactJSON(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}

func (t *Turn) chatStopReason() string {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (u *Usage) toChatUsage() any {
	if u == nil {
		return nil
	}
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     map[string]int{"cached_tokens": u.Cached},
		"completion_tokens_details": map[string]int{"reasoning_tokens": u.Reasoning},
	}
}

func (e *exchange) reasoningField() string {
	if e.script.hasQuirk("reasoning") {
		return "reasoning"
	}
	return "reasoning_content"
}

// buildChatReply returns the response to a request without streaming.
func (e *exchange) buildChatReply(req *chatRequest, turn *Turn) any {
	message := map[string]any{"role": "assistant", "content": turn.Text}
	if turn.Reasoning != "" {
		message[e.reasoningField()] = turn.Reasoning
	}
	if calls := e.chatCalls(turn); calls != nil {
		message["tool_calls"] = calls
	}
	return map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": req.Model, "usage": turn.Usage.toChatUsage(),
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": turn.chatStopReason()}},
	}
}

func (e *exchange) streamChat(req *chatRequest, turn *Turn) {
	chunk := func(choices []any) map[string]any {
		return map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": req.Model, "choices": choices}
	}
	e.startStream()
	deltas := e.chatDeltas(turn)
	if turn.Cut {
		deltas = deltas[:(len(deltas)+1)/2]
	}
	for _, delta := range deltas {
		e.sendEvent("", chunk([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}}))
	}
	if turn.Cut {
		e.abortResponse()
	}
	if turn.Fail != nil {
		e.sendEvent("", map[string]any{"error": turn.Fail.toChatError()})
		return
	}
	e.sendEvent("", chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": turn.chatStopReason()}}))
	if req.StreamOptions.IncludeUsage {
		last := chunk([]any{})
		last["usage"] = turn.Usage.toChatUsage()
		e.sendEvent("", last)
	}
	e.sendEvent("", "[DONE]")
}

func (e *exchange) chatDeltas(turn *Turn) (deltas []map[string]any) {
	deltas = append(deltas, map[string]any{"role": "assistant", "content": ""})
	for _, piece := range splitText(turn.Reasoning) {
		deltas = append(deltas, map[string]any{e.reasoningField(): piece, "content": nil})
	}
	for _, piece := range splitText(turn.Text) {
		deltas = append(deltas, map[string]any{"content": piece})
	}
	for _, call := range e.callDeltas(turn) {
		deltas = append(deltas, map[string]any{"tool_calls": []chatCall{call}})
	}
	return deltas
}

// callDeltas returns the fragments of the calls: first the id and name, then pieces of the
// arguments.
func (e *exchange) callDeltas(turn *Turn) (deltas []chatCall) {
	calls := e.chatCalls(turn)
	rows := make([][]chatCall, len(calls))
	longest := 0
	for i, whole := range calls {
		if e.script.hasQuirk("wholeCalls") {
			whole.Index = new(0)
			deltas = append(deltas, whole)
			continue
		}
		first := whole
		first.Index, first.Function.Arguments = &i, ""
		rows[i] = []chatCall{first}
		for _, piece := range splitText(whole.Function.Arguments) {
			next := chatCall{Index: &i}
			next.Function.Arguments = piece
			rows[i] = append(rows[i], next)
		}
		longest = max(longest, len(rows[i]))
	}
	if !e.script.hasQuirk("interleaved") {
		for _, row := range rows {
			deltas = append(deltas, row...)
		}
		return deltas
	}
	for n := range longest {
		for _, row := range rows {
			if n < len(row) {
				deltas = append(deltas, row[n])
			}
		}
	}
	return deltas
}
