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

var chatName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// maxChatID is the maximal length of a call's id in bytes.
const maxChatID = 40

// checkChat returns the API's error for a request, or nil.
func (e *exchange) checkChat(req *chatRequest) *chatError {
	key := strings.TrimPrefix(e.r.Header.Get("Authorization"), "Bearer ")
	switch {
	case e.script.Key != "" && key == "":
		return &chatError{status: http.StatusUnauthorized, Message: "You didn't provide an API key.", Type: "invalid_request_error"}
	case e.script.Key != "" && key != e.script.Key:
		wrong := invalidRequest("Incorrect API key provided: "+key+".", "", "invalid_api_key")
		wrong.status = http.StatusUnauthorized
		return wrong
	case req.Model == "":
		return invalidRequest("you must provide a model parameter", "", "")
	case e.script.Model != "" && req.Model != e.script.Model:
		wrong := invalidRequest(fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", req.Model), "", "model_not_found")
		wrong.status = http.StatusNotFound
		return wrong
	case e.script.hasQuirk("noTools") && len(req.Tools) > 0:
		return invalidRequest(fmt.Sprintf("registry.ollama.ai/library/%s does not support tools", req.Model), "", "")
	}
	if wrong := e.script.checkChatTools(req.Tools); wrong != nil {
		return wrong
	}
	return e.script.checkChatMessages(req)
}

func (s *Script) checkChatMessages(req *chatRequest) *chatError {
	if len(req.Messages) == 0 {
		return invalidRequest("Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.", "messages", "empty_array")
	}
	if wrong := checkChatRoles(req.Messages); wrong != nil {
		return wrong
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		if wrong := checkChatContent(i, m); wrong != nil {
			return wrong
		}
		if s.hasQuirk("thinking") && m.Role == "assistant" && len(req.Tools) > 0 && m.ReasoningContent == nil {
			return invalidRequest("The `reasoning_content` in the thinking mode must be passed back to the API.", "", "invalid_request_error")
		}
		if s.hasQuirk("signed") && len(m.ToolCalls) > 0 && compactJSON(string(m.ToolCalls[0].Extra)) != string(m.ToolCalls[0].expectedSignature()) {
			return invalidRequest(fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "+
				"and missing thought_signature may lead to degraded model performance. Additional data, function call `%s`, position %d.", m.ToolCalls[0].Function.Name, i), "", "")
		}
	}
	return checkToolAnswers(req.Messages)
}

// checkChatRoles enforces the order of roles that OpenAI and the chat templates of open models
// require together: first the system message, then user and assistant messages in turns, with tool
// messages after an assistant message.
func checkChatRoles(messages []chatMessage) *chatError {
	before := ""
	for i, m := range messages {
		wrong := false
		switch m.Role {
		case "system", "developer":
			if i > 0 {
				return invalidRequest("System message must be at the beginning.", fmt.Sprintf("messages.[%d].role", i), "")
			}
		case "user":
			wrong = before == "user"
		case "assistant":
			wrong = before != "user" && before != "tool"
		case "tool": // see checkToolAnswers
		default:
			return invalidRequest(fmt.Sprintf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role), fmt.Sprintf("messages[%d].role", i), "invalid_value")
		}
		if wrong {
			return invalidRequest("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...", fmt.Sprintf("messages.[%d].role", i), "")
		}
		before = m.Role
	}
	if before == "assistant" || before == "system" || before == "developer" {
		return invalidRequest("Expected last role User or Tool for serving but got "+before, "messages", "")
	}
	return nil
}

// checkToolAnswers checks that the messages directly after calls answer each call once.
func checkToolAnswers(messages []chatMessage) *chatError {
	var open []string
	closed := func() *chatError {
		if len(open) == 0 {
			return nil
		}
		return invalidRequest("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
			"The following tool_call_ids did not have response messages: "+strings.Join(open, ", "), "messages", "")
	}
	for i, m := range messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return invalidRequest("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", fmt.Sprintf("messages.[%d].role", i), "")
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if wrong := closed(); wrong != nil {
			return wrong
		}
		for j, call := range m.ToolCalls {
			at := fmt.Sprintf("messages[%d].tool_calls[%d]", i, j)
			switch {
			case call.ID == "" || slices.Contains(open, call.ID):
				return invalidRequest(fmt.Sprintf("Invalid '%s.id': empty or duplicate.", at), at+".id", "")
			case len(call.ID) > maxChatID:
				return invalidRequest(fmt.Sprintf("Invalid '%s.id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, maxChatID, len(call.ID)), at+".id", "string_above_max_length")
			case call.Type != "function":
				return invalidRequest(fmt.Sprintf("Missing required parameter: '%s.type'.", at), at+".type", "missing_required_parameter")
			case !chatName.MatchString(call.Function.Name):
				return invalidRequest(fmt.Sprintf("Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at), at+".function.name", "invalid_value")
			case !isObject([]byte(call.Function.Arguments)):
				return invalidRequest("Failed to parse tool call arguments as JSON", at+".function.arguments", "")
			}
			open = append(open, call.ID)
		}
	}
	return closed()
}

func isObject(data []byte) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(data, &o) == nil && o != nil
}

type chatPart struct {
	Type     string
	Text     string
	ImageURL *struct{ URL string } `json:"image_url"`
	Audio    *struct {
		Data   string
		Format string
	} `json:"input_audio"`
}

func checkChatContent(i int, m *chatMessage) *chatError {
	at := fmt.Sprintf("messages.[%d].content", i)
	var text string
	var parts []chatPart
	switch {
	case len(m.Content) == 0 || string(m.Content) == "null":
		if m.Role == "assistant" && len(m.ToolCalls) > 0 {
			return nil
		}
		return invalidRequest("Invalid value for 'content': expected a string, got null.", at, "")
	case json.Unmarshal(m.Content, &text) == nil:
		if text == "" && len(m.ToolCalls) == 0 {
			return invalidRequest("Invalid value for 'content': the string must not be empty.", at, "")
		}
		return nil
	case json.Unmarshal(m.Content, &parts) != nil || len(parts) == 0:
		return invalidRequest("Invalid type for 'content': expected a string or an array of parts.", at, "invalid_type")
	}
	for _, p := range parts {
		if wrong := p.checkPart(i, m.Role); wrong != "" {
			return invalidRequest(wrong, at, "invalid_value")
		}
	}
	return nil
}

var imageURL = regexp.MustCompile(`^data:image/(png|jpeg|gif|webp);base64,(.+)$`)

func (p *chatPart) checkPart(i int, role string) string {
	switch p.Type {
	case "text":
		if p.Text == "" {
			return "text content blocks must be non-empty"
		}
	case "image_url":
		if role != "user" {
			return fmt.Sprintf("Invalid 'messages[%d]'. Image URLs are only allowed for messages with role 'user', but this message with role '%s' contains an image URL.", i, role)
		}
		if p.ImageURL == nil {
			return "Missing required parameter: 'image_url.url'."
		}
		found := imageURL.FindStringSubmatch(p.ImageURL.URL)
		if found == nil {
			return "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp']."
		}
		data, err := base64.StdEncoding.DecodeString(found[2])
		switch {
		case err != nil:
			return "Invalid base64 image_url."
		case http.DetectContentType(data) != "image/"+found[1]:
			return "You uploaded an unsupported image. Please make sure your image is valid."
		}
	case "input_audio":
		if role != "user" || p.Audio == nil || p.Audio.Data == "" || p.Audio.Format != "wav" && p.Audio.Format != "mp3" {
			return "Invalid 'input_audio': only in messages of the user, and in the formats 'wav' and 'mp3'."
		}
		data, err := base64.StdEncoding.DecodeString(p.Audio.Data)
		if found := http.DetectContentType(data); err != nil || strings.HasPrefix(found, "text/") || (found == "audio/wave") != (p.Audio.Format == "wav") {
			return "The data provided for 'input_audio' is not of valid " + p.Audio.Format + " format."
		}
	default:
		return fmt.Sprintf("Invalid value: '%s'. Supported values are: 'text', 'image_url', and 'input_audio'.", p.Type)
	}
	return ""
}
