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

// messagesFields are the known members of a request. The API refuses others.
var messagesFields = []string{"model", "max_tokens", "system", "messages", "tools", "thinking", "stream", "temperature", "top_p", "top_k",
	"stop_sequences", "tool_choice", "metadata", "service_tier", "output_config", "container", "cache_control"}

// messagesCheck reads a request, and returns the API's error for it; nil for a good one.
func (e *exchange) messagesCheck(req *messagesRequest) *messagesError {
	key := e.r.Header.Get("X-Api-Key")
	switch {
	case e.script.Key != "" && key == "":
		return &messagesError{http.StatusUnauthorized, "authentication_error", "x-api-key header is required"}
	case e.script.Key != "" && key != e.script.Key:
		return &messagesError{http.StatusUnauthorized, "authentication_error", "invalid x-api-key"}
	}
	if err := json.Unmarshal(e.body, req); err != nil {
		return (&Failure{Status: 400, Message: "The request body is not valid JSON: " + err.Error()}).messagesError()
	}
	if why := e.messagesWrong(req); why != "" {
		return (&Failure{Status: 400, Message: why}).messagesError()
	}
	if e.script.Model != "" && req.Model != e.script.Model {
		return &messagesError{http.StatusNotFound, "not_found_error", "model: " + req.Model}
	}
	return nil
}

// messagesWrong returns the first broken rule in the API's words; "" for a good request.
func (e *exchange) messagesWrong(req *messagesRequest) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(e.body, &fields) // it has been read before
	for name := range fields {
		if !slices.Contains(messagesFields, name) {
			return name + ": Extra inputs are not permitted"
		}
	}
	for _, rule := range []func(*messagesRequest) string{
		e.headerWrong, requiredWrong, e.thinkingWrong, systemWrong, toolsWrong, e.rolesWrong, contentWrong, callsWrong, e.thoughtsWrong, endWrong, cacheWrong,
	} {
		if why := rule(req); why != "" {
			return why
		}
	}
	return ""
}

func (e *exchange) headerWrong(*messagesRequest) string {
	if e.r.Header.Get("Anthropic-Version") == "" {
		return "anthropic-version: header is required"
	}
	return ""
}

func requiredWrong(req *messagesRequest) string {
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

func (e *exchange) thinkingWrong(req *messagesRequest) string {
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

func systemWrong(req *messagesRequest) string {
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

// maxMessagesImage is the largest image, in bytes of base64.
const maxMessagesImage = 5 << 20

// rolesWrong demands alternating roles. The API itself joins messages of one role; imitators
// refuse them.
func (e *exchange) rolesWrong(req *messagesRequest) string {
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
	if last := req.Messages[len(req.Messages)-1]; last.Role == "assistant" && !e.isPaused() {
		return "This model does not support assistant message prefill. The conversation must end with a user message."
	}
	return ""
}

// isPaused reports whether the last turn was paused. The client continues it by sending it back.
func (e *exchange) isPaused() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.played > 0 && e.script.Turns[e.played-1].Stop == "pause_turn"
}

// allowed lists the types of blocks by their place.
var allowed = map[string][]string{
	"user":        {"text", "image", "document", "tool_result"},
	"assistant":   {"text", "tool_use", "thinking", "redacted_thinking"},
	"tool_result": {"text", "image", "document"},
}

func contentWrong(req *messagesRequest) string {
	for i, m := range req.Messages {
		for j, block := range m.Content {
			if why := blockWrong(fmt.Sprintf("messages.%d.content.%d", i, j), m.Role, &block); why != "" {
				return why
			}
		}
	}
	return ""
}

func blockWrong(at, place string, b *contentBlock) string {
	if !slices.Contains(allowed[place], b.Type) {
		return fmt.Sprintf("%s: Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", at, b.Type, strings.Join(allowed[place], "', '"))
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
		return imageWrong(at+".image.source", b.Source)
	case "tool_use":
		return toolUseWrong(at+".tool_use.", b)
	case "tool_result":
		return toolResultWrong(at+".tool_result", b)
	}
	return ""
}

func toolUseWrong(at string, b *contentBlock) string {
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

func toolResultWrong(at string, b *contentBlock) string {
	if b.IsError && len(b.Content) == 0 {
		return at + ": content cannot be empty if `is_error` is true"
	}
	for k, part := range b.Content {
		if why := blockWrong(fmt.Sprintf("%s.content.%d", at, k), "tool_result", &part); why != "" {
			return why
		}
		if b.IsError && part.Type != "text" {
			return at + ": all content must be type `text` if `is_error` is true"
		}
	}
	return ""
}

func imageWrong(at string, s *imageSource) string {
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

// callsWrong demands the results of all calls at the beginning of the next message, and a call
// for each result.
func callsWrong(req *messagesRequest) string {
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

// unansweredCalls returns the open calls without a result at the beginning of a message.
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

// thoughtsWrong demands that thoughts come back unchanged to the model that made them, and that
// they stand before the calls of an unfinished turn.
func (e *exchange) thoughtsWrong(req *messagesRequest) string {
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
			if got != e.signThought(req, block.Thinking, j) {
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

// endWrong refuses messages that end with thoughts.
func endWrong(req *messagesRequest) string {
	for i, m := range req.Messages {
		if last := m.Content[len(m.Content)-1].Type; strings.HasSuffix(last, "thinking") {
			return fmt.Sprintf("messages.%d: The final block in an assistant message cannot be `%s`.", i, last)
		}
	}
	return ""
}

// countMarks counts the blocks that are marked for the cache.
func (req *messagesRequest) countMarks() (n int) {
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

func cacheWrong(req *messagesRequest) string {
	for i, m := range req.Messages {
		for j, block := range m.Content {
			if len(block.CacheControl) > 0 && strings.HasSuffix(block.Type, "thinking") {
				return fmt.Sprintf("messages.%d.content.%d.%s.cache_control: Extra inputs are not permitted", i, j, block.Type)
			}
		}
	}
	if n := req.countMarks(); n > 4 {
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return ""
}
