package openai

import (
	"encoding/json"
	"fmt"
	"slices"
)

// object is one whose members are not looked into.
type object = map[string]json.RawMessage

// events makes a stream of a whole chat completion, with which servers exist that answer a request for a stream, and of an error
// that came as a success; nil of all else.
func events(body []byte) []byte {
	var whole object
	if json.Unmarshal(body, &whole) != nil {
		return nil
	}
	if failed := whole["error"]; len(failed) > 0 && string(failed) != "null" {
		return event(whole)
	}
	delete(whole, "error") // which the SDK takes for one
	var choices []object
	if json.Unmarshal(whole["choices"], &choices) != nil || len(choices) == 0 {
		return nil
	}
	for _, choice := range choices {
		if !streamed(choice) {
			return nil
		}
	}
	whole["choices"] = raw(choices)
	return slices.Concat(event(whole), []byte("data: [DONE]\n\n"))
}

// streamed makes a whole choice the only piece of a stream, if it is one.
func streamed(choice object) bool {
	var message object
	if json.Unmarshal(choice["message"], &message) != nil || message == nil {
		return false
	}
	var calls []object
	if json.Unmarshal(message["tool_calls"], &calls) == nil && len(calls) > 0 {
		for i, call := range calls {
			call["index"] = raw(i)
		}
		message["tool_calls"] = raw(calls)
	}
	delete(choice, "message")
	choice["delta"] = raw(message)
	if finish := string(choice["finish_reason"]); finish == "" || finish == "null" {
		choice["finish_reason"] = raw("stop") // it is whole
	}
	return true
}

func event(of object) []byte { return fmt.Appendf(nil, "data: %s\n\n", raw(of)) }

// raw encodes what always can be.
func raw(v any) json.RawMessage {
	data, _ := json.Marshal(v)
	return data
}
