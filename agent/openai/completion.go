package openai

import (
	"encoding/json"
	"fmt"
	"slices"
)

// object is a JSON object with unparsed members.
type object = map[string]json.RawMessage

// eventsOfCompletion turns a complete chat completion into the events of a stream: servers exist
// that answer a request for a stream with one. An error that came with the status of a success
// becomes an event, too. Other documents give nil.
func eventsOfCompletion(body []byte) []byte {
	var completion object
	if json.Unmarshal(body, &completion) != nil {
		return nil
	}
	if failed := completion["error"]; len(failed) > 0 && string(failed) != "null" {
		return encodeEvent(completion)
	}
	var choices []object
	if json.Unmarshal(completion["choices"], &choices) != nil || len(choices) == 0 {
		return nil
	}
	for _, choice := range choices {
		if !messageToDelta(choice) {
			return nil
		}
	}
	completion["choices"] = rawJSON(choices)
	return slices.Concat(encodeEvent(completion), []byte("data: [DONE]\n\n"))
}

// messageToDelta turns a choice with a complete message into one with a single delta. It reports
// false if the choice has no message.
func messageToDelta(choice object) bool {
	var message object
	if json.Unmarshal(choice["message"], &message) != nil || message == nil {
		return false
	}
	var calls []object
	if json.Unmarshal(message["tool_calls"], &calls) == nil && len(calls) > 0 {
		for i, call := range calls {
			call["index"] = rawJSON(i)
		}
		message["tool_calls"] = rawJSON(calls)
	}
	delete(choice, "message")
	choice["delta"] = rawJSON(message)
	if finish := string(choice["finish_reason"]); finish == "" || finish == "null" {
		choice["finish_reason"] = rawJSON("stop") // the document is complete
	}
	return true
}

func encodeEvent(of object) []byte { return fmt.Appendf(nil, "data: %s\n\n", rawJSON(of)) }

// rawJSON encodes numbers, strings and parsed JSON, which cannot fail.
func rawJSON(v any) json.RawMessage {
	data, _ := json.Marshal(v)
	return data
}
