package modelserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// messagesFields are the known fields of a request.
var messagesFields = []string{"model", "max_tokens", "system", "messages", "tools", "thinking", "stream", "temperature", "top_p", "top_k",
	"stop_sequences", "tool_choice", "metadata", "service_tier", "output_config", "container", "cache_control"}

// checkMessagesRequest parses a request and returns the API's error for it, or nil.
func (e *exchange) checkMessagesRequest(req *messagesRequest) *messagesError {
	key := e.r.Header.Get("X-Api-Key")
	switch {
	case e.script.Key != "" && key == "":
		return &messagesError{http.StatusUnauthorized, "authentication_error", "x-api-key header is required"}
	case e.script.Key != "" && key != e.script.Key:
		return &messagesError{http.StatusUnauthorized, "authentication_error", "invalid x-api-key"}
	}
	if err := json.Unmarshal(e.body, req); err != nil {
		return (&Failure{Status: 400, Message: "The request body is not valid JSON: " + err.Error()}).toMessagesError()
	}
	if why := e.checkRules(req); why != "" {
		return (&Failure{Status: 400, Message: why}).toMessagesError()
	}
	if e.script.Model != "" && req.Model != e.script.Model {
		return &messagesError{http.StatusNotFound, "not_found_error", "model: " + req.Model}
	}
	return nil
}

// checkRules returns the API's error for the first rule that the request breaks, or "".
func (e *exchange) checkRules(req *messagesRequest) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(e.body, &fields) // parsed before
	for name := range fields {
		if !slices.Contains(messagesFields, name) {
			return name + ": Extra inputs are not permitted"
		}
	}
	for _, rule := range []func(*messagesRequest) string{
		e.checkHeader, checkRequired, e.checkThinking, checkSystem, checkMessagesTools, e.checkRoles, checkBlocks, checkCalls, e.checkThinkingBlocks, checkLastBlock, checkCacheMarks,
	} {
		if why := rule(req); why != "" {
			return why
		}
	}
	return ""
}

func (e *exchange) checkHeader(*messagesRequest) string {
	if e.r.Header.Get("Anthropic-Version") == "" {
		return "anthropic-version: header is required"
	}
	return ""
}

func checkRequired(req *messagesRequest) string {
	switch {
	case req.Model == "":
		return "model: Field required"
	case req.MaxTokens == nil:
		return "max_tokens: Field required"
	case *req.MaxTokens < 1:
		return "max_tokens: Input should be greater than or equal to 1"
	case len(req.Messages) == 0:
		return "messages: at least one message is required"
	}
	return ""
}

func (e *exchange) checkThinking(req *messagesRequest) string {
	switch t := req.Thinking; {
	case t.Type == "enabled" && e.script.hasQuirk("adaptive"):
		return `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`
	case t.Type == "enabled" && t.BudgetTokens < 1024:
		return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
	case t.Type == "enabled" && t.BudgetTokens >= *req.MaxTokens:
		return "`max_tokens` must be greater than `thinking.budget_tokens`."
	case !slices.Contains([]string{"", "enabled", "disabled", "adaptive"}, t.Type):
		return fmt.Sprintf("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", t.Type)
	}
	return ""
}

func checkSystem(req *messagesRequest) string {
	for i, block := range req.System {
		switch {
		case block.Type != "text":
			return fmt.Sprintf("system.%d: Input should be of type 'text'", i)
		case strings.TrimSpace(block.Text) == "":
			return "system: text content blocks must be non-empty"
		}
	}
	return ""
}

var (
	messagesID     = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	messagesImages = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
)

// maxMessagesImage is the maximal size of an image in bytes of base64.
const maxMessagesImage = 5 << 20

// checkRoles requires alternating roles. The API itself now joins messages of one role, but
// compatible servers still refuse them.
func (e *exchange) checkRoles(req *messagesRequest) string {
	for i, m := range req.Messages {
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return fmt.Sprintf("messages.%d.role: Input should be 'user' or 'assistant'", i)
		case i == 0 && m.Role != "user":
			return `messages: first message must use the "user" role`
		case i > 0 && m.Role == req.Messages[i-1].Role:
			return fmt.Sprintf(`messages: roles must alternate between "user" and "assistant", but found multiple %q roles in a row`, m.Role)
		case len(m.Content) == 0:
			return fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
	}
	if last := req.Messages[len(req.Messages)-1]; last.Role == "assistant" && !e.wasPaused() {
		return "This model does not support assistant message prefill. The conversation must end with a user message."
	}
	return ""
}

// wasPaused reports whether the last turn was paused. The client continues such a turn by sending
// back the partial reply.
func (e *exchange) wasPaused() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.playedTurns > 0 && e.script.Turns[e.playedTurns-1].Stop == "pause_turn"
}

// allowedBlocks are the block types that each role, and a tool result, may contain.
var allowedBlocks = map[string][]string{
	"user":        {"text", "image", "document", "tool_result"},
	"assistant":   {"text", "tool_use", "thinking", "redacted_thinking"},
	"tool_result": {"text", "image", "document"},
}

func checkBlocks(req *messagesRequest) string {
	for i, m := range req.Messages {
		for j, block := range m.Content {
			if why := checkBlock(fmt.Sprintf("messages.%d.content.%d", i, j), m.Role, &block); why != "" {
				return why
			}
		}
	}
	return ""
}

func checkBlock(at, place string, b *contentBlock) string {
	if !slices.Contains(allowedBlocks[place], b.Type) {
		return fmt.Sprintf("%s: Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", at, b.Type, strings.Join(allowedBlocks[place], "', '"))
	}
	switch b.Type {
	case "text":
		if b.Text == "" {
			return "messages: text content blocks must be non-empty"
		}
		if strings.TrimSpace(b.Text) == "" {
			return "messages: text content blocks must contain non-whitespace text"
		}
	case "image":
		return checkImage(at+".image.source", b.Source)
	case "tool_use":
		return checkToolUse(at+".tool_use.", b)
	case "tool_result":
		return checkToolResult(at+".tool_result", b)
	}
	return ""
}

func checkToolUse(at string, b *contentBlock) string {
	var input map[string]json.RawMessage
	switch {
	case !messagesID.MatchString(b.ID):
		return at + "id: String should match pattern '" + messagesID.String() + "'"
	case !messagesName.MatchString(b.Name):
		return at + "name: String should match pattern '" + messagesName.String() + "'"
	case json.Unmarshal(b.Input, &input) != nil || input == nil:
		return at + "input: Input should be a valid dictionary"
	}
	return ""
}

func checkToolResult(at string, b *contentBlock) string {
	if b.IsError && len(b.Content) == 0 {
		return at + ": content cannot be empty if `is_error` is true"
	}
	for k, part := range b.Content {
		if why := checkBlock(fmt.Sprintf("%s.content.%d", at, k), "tool_result", &part); why != "" {
			return why
		}
		if b.IsError && part.Type != "text" {
			return at + ": all content must be type `text` if `is_error` is true"
		}
	}
	return ""
}

func checkImage(at string, s *imageSource) string {
	if s == nil || s.Type != "base64" {
		return at + ": Field required"
	}
	if !slices.Contains(messagesImages, s.MediaType) {
		return at + ".base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
	}
	if len(s.Data) > maxMessagesImage {
		return fmt.Sprintf("%s.base64: image exceeds 5 MB maximum: %d bytes > %d bytes", at, len(s.Data), maxMessagesImage)
	}
	data, err := base64.StdEncoding.DecodeString(s.Data)
	switch found := http.DetectContentType(data); {
	case err != nil:
		return at + ".base64.data: invalid base64 data"
	case !slices.Contains(messagesImages, found):
		return "Could not process image"
	case found != s.MediaType:
		return fmt.Sprintf("%s.base64.data: The image was specified using the %s media type, but the image appears to be a %s image", at, s.MediaType, found)
	}
	return ""
}

// checkCalls requires a result for each call at the start of the next message, and a call for each
// result.
func checkCalls(req *messagesRequest) string {
	seen := map[string]bool{}
	var open []string
	for i, m := range req.Messages {
		if m.Role == "assistant" {
			open = nil
			for _, block := range m.Content {
				if block.Type != "tool_use" {
					continue
				}
				if seen[block.ID] {
					return fmt.Sprintf("messages.%d.content: `tool_use` ids must be unique", i)
				}
				if len(req.Tools) == 0 {
					return "Requests which have `tool_use` or `tool_result` blocks in their messages must define tools."
				}
				seen[block.ID] = true
				open = append(open, block.ID)
			}
			continue
		}
		rest, why := unansweredCalls(i, m.Content, open)
		if why != "" {
			return why
		}
		if len(rest) > 0 {
			return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i-1, strings.Join(rest, ", "))
		}
	}
	return ""
}

// unansweredCalls returns the calls in open without a result at the start of the content.
func unansweredCalls(i int, content contentBlocks, open []string) (rest []string, why string) {
	rest, beginning := slices.Clone(open), true
	for j, block := range content {
		if block.Type != "tool_result" {
			beginning = false
			continue
		}
		if !slices.Contains(rest, block.ToolUseID) {
			return nil, fmt.Sprintf("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, block.ToolUseID)
		}
		if beginning {
			rest = slices.DeleteFunc(rest, func(id string) bool { return id == block.ToolUseID })
		}
	}
	return rest, ""
}

// checkThinkingBlocks requires unchanged thinking blocks from the same model, and a thinking block
// before the calls of an unfinished turn.
func (e *exchange) checkThinkingBlocks(req *messagesRequest) string {
	for i, m := range req.Messages {
		for j, block := range m.Content {
			at, got := fmt.Sprintf("messages.%d.content.%d", i, j), block.Signature
			switch {
			case block.Type == "redacted_thinking":
				got = block.Data
			case block.Type != "thinking":
				continue
			case got == "":
				return at + ".thinking.signature: Field required"
			}
			if got != e.thinkingSignature(req, block.Thinking, j) {
				return at + ": Invalid `signature` in `thinking` block"
			}
		}
	}
	n := len(req.Messages)
	if req.Thinking.Type != "enabled" || n < 2 || req.Messages[n-1].Content[0].Type != "tool_result" {
		return ""
	}
	if first := req.Messages[n-2].Content[0].Type; !strings.HasSuffix(first, "thinking") {
		return fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", n-2, first)
	}
	return ""
}

// checkLastBlock rejects assistant messages that end with a thinking block.
func checkLastBlock(req *messagesRequest) string {
	for i, m := range req.Messages {
		if last := m.Content[len(m.Content)-1].Type; strings.HasSuffix(last, "thinking") {
			return fmt.Sprintf("messages.%d: The final block in an assistant message cannot be `%s`.", i, last)
		}
	}
	return ""
}

// countCacheMarks counts the blocks with cache_control.
func (req *messagesRequest) countCacheMarks() (n int) {
	count := func(blocks contentBlocks) {
		for _, block := range blocks {
			if len(block.CacheControl) > 0 {
				n++
			}
		}
	}
	count(req.System)
	for _, m := range req.Messages {
		count(m.Content)
	}
	for _, t := range req.Tools {
		if len(t.CacheControl) > 0 {
			n++
		}
	}
	return n
}

func checkCacheMarks(req *messagesRequest) string {
	for i, m := range req.Messages {
		for j, block := range m.Content {
			if len(block.CacheControl) > 0 && strings.HasSuffix(block.Type, "thinking") {
				return fmt.Sprintf("messages.%d.content.%d.%s.cache_control: Extra inputs are not permitted", i, j, block.Type)
			}
		}
	}
	if n := req.countCacheMarks(); n > 4 {
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return ""
}
