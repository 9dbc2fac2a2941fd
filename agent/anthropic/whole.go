package anthropic

import (
	"encoding/json"
	"fmt"
)

// events makes a stream of a whole message, with which servers exist that answer a request for a stream, and of an error that came as
// a success; nil of all else.
func events(body []byte) []byte {
	var whole map[string]json.RawMessage
	if json.Unmarshal(body, &whole) != nil {
		return nil
	}
	if failed := whole["error"]; len(failed) > 0 && string(failed) != "null" {
		return event("error", whole)
	}
	var content []json.RawMessage
	if json.Unmarshal(whole["content"], &content) != nil || string(whole["type"]) != `"message"` {
		return nil
	}
	delta := map[string]json.RawMessage{}
	for _, name := range []string{"stop_reason", "stop_sequence", "stop_details"} {
		if value := whole[name]; value != nil {
			delta[name] = value
		}
	}
	whole["content"] = json.RawMessage("[]")
	stream := event("message_start", map[string]any{"message": whole})
	for i, block := range content {
		stream = append(stream, event("content_block_start", map[string]any{"index": i, "content_block": block})...)
		stream = append(stream, event("content_block_stop", map[string]any{"index": i})...)
	}
	end := map[string]any{"delta": delta}
	if usage := whole["usage"]; usage != nil {
		end["usage"] = usage
	}
	stream = append(stream, event("message_delta", end)...)
	return append(stream, event("message_stop", map[string]any{})...)
}

// event is one of a stream, with its name as its type.
func event[M ~map[string]V, V any](name string, members M) []byte {
	all := map[string]any{}
	for key, value := range members {
		all[key] = value
	}
	all["type"] = name
	data, _ := json.Marshal(all) // JSON and numbers always can be
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}
