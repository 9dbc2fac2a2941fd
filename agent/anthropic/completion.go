package anthropic

import (
	"encoding/json"
	"fmt"
)

// eventsOfMessage converts a complete message to the events of a stream, because some servers
// answer a request for a stream with a message. It also converts an error that was sent with the
// status 200. It returns nil for other documents.
func eventsOfMessage(body []byte) []byte {
	var message map[string]json.RawMessage
	if json.Unmarshal(body, &message) != nil {
		return nil
	}
	if failed := message["error"]; len(failed) > 0 && string(failed) != "null" {
		return encodeEvent("error", map[string]any{"error": failed})
	}
	var content []json.RawMessage
	if json.Unmarshal(message["content"], &content) != nil || string(message["type"]) != `"message"` {
		return nil
	}
	delta := map[string]any{}
	for _, name := range []string{"stop_reason", "stop_sequence", "stop_details"} {
		if value := message[name]; value != nil {
			delta[name] = value
		}
	}
	message["content"] = json.RawMessage("[]")
	events := encodeEvent("message_start", map[string]any{"message": message})
	for i, block := range content {
		events = append(events, encodeEvent("content_block_start", map[string]any{"index": i, "content_block": block})...)
		events = append(events, encodeEvent("content_block_stop", map[string]any{"index": i})...)
	}
	events = append(events, encodeEvent("message_delta", map[string]any{"delta": delta})...)
	return append(events, encodeEvent("message_stop", map[string]any{})...)
}

// encodeEvent encodes an event with its name as its type.
func encodeEvent(name string, members map[string]any) []byte {
	members["type"] = name
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, encodeJSON(members))
}
