package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
)

// streamedMessage is a message of the API that is put together from the events of a stream.
type streamedMessage struct {
	blocks      []*streamedBlock
	stopReason  string
	explanation string // of a refusal
	usage       tokenUsage
}

// streamedBlock is a content block that collects its deltas as they arrive.
type streamedBlock struct {
	kind      string
	id, name  string
	text      strings.Builder
	thinking  strings.Builder
	signature strings.Builder
	input     strings.Builder
	citations []json.RawMessage

	start   json.RawMessage // the block as its first event has it
	changed bool            // a delta has come since
}

// addEvent applies an event. The events of a message are content_block_start, deltas and
// content_block_stop for each block, between message_start and message_stop.
func (m *streamedMessage) addEvent(e *streamEvent) error {
	switch e.Type {
	case "message_start":
		*m = streamedMessage{}
		m.updateUsage(e.Message.Usage)
	case "message_delta":
		m.stopReason, m.explanation = e.Delta.StopReason, e.Delta.StopDetails.Explanation
		m.updateUsage(e.Usage)
	case "content_block_start":
		b, err := newStreamedBlock(e.ContentBlock)
		if err != nil || e.Index != len(m.blocks) {
			return fmt.Errorf("block %d begins after %d blocks: %s", e.Index, len(m.blocks), e.ContentBlock)
		}
		m.blocks = append(m.blocks, b)
	case "content_block_delta", "content_block_stop":
		if e.Index < 0 || e.Index >= len(m.blocks) {
			return fmt.Errorf("%s of block %d after %d blocks", e.Type, e.Index, len(m.blocks))
		}
		m.blocks[e.Index].addDelta(&e.Delta)
	}
	return nil
}

// updateUsage sets the counts that the event has. Each is a total of the message, so the last
// counts.
func (m *streamedMessage) updateUsage(usage json.RawMessage) {
	_ = json.Unmarshal(usage, &m.usage) // a count of another type is left as it was
}

func newStreamedBlock(start json.RawMessage) (*streamedBlock, error) {
	var head struct {
		Type, Text, Thinking, Signature, ID, Name string
		Input                                     json.RawMessage
		Citations                                 []json.RawMessage
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(start, &members); err != nil {
		return nil, err
	}
	_ = json.Unmarshal(start, &head) // a member of another type is left out
	b := &streamedBlock{kind: head.Type, id: head.ID, name: head.Name, citations: head.Citations, start: start}
	b.text.WriteString(head.Text)
	b.thinking.WriteString(head.Thinking)
	b.signature.WriteString(head.Signature)
	switch string(head.Input) {
	case "{}", "null", `""`: // placeholders before the pieces of the input; some servers send null or ""
	default:
		b.input.Write(head.Input)
	}
	return b, nil
}

func (b *streamedBlock) addDelta(d *eventDelta) {
	b.changed = b.changed || d.Type != ""
	switch d.Type {
	case "text_delta":
		b.text.WriteString(d.Text)
	case "thinking_delta":
		b.thinking.WriteString(d.Thinking)
	case "signature_delta":
		b.signature.WriteString(d.Signature)
	case "input_json_delta":
		b.input.WriteString(d.PartialJSON)
	case "citations_delta":
		b.citations = append(b.citations, d.Citation)
	}
}

// encodeBlock returns the block as the API wants it back: byte for byte if it came at once, and
// otherwise its first event with the deltas applied. Unknown members stay.
func (b *streamedBlock) encodeBlock() json.RawMessage {
	if !b.changed {
		return b.start
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(b.start, &members) != nil || members == nil {
		return b.start
	}
	for name, text := range map[string]string{"text": b.text.String(), "thinking": b.thinking.String(), "signature": b.signature.String()} {
		if text != "" {
			members[name] = encodeJSON(text)
		}
	}
	if input := b.input.String(); json.Valid([]byte(input)) {
		members["input"] = json.RawMessage(input)
	}
	if len(b.citations) > 0 {
		members["citations"] = encodeJSON(b.citations)
	}
	return encodeJSON(members)
}

// callInput returns the input of a call. Text that is not JSON becomes a JSON string. Tools refuse
// it, and the tool's error tells the model.
func (b *streamedBlock) callInput() json.RawMessage {
	if text := b.input.String(); text != "" && !json.Valid([]byte(text)) {
		return encodeJSON(text)
	}
	return inputObject(json.RawMessage(b.input.String()))
}
