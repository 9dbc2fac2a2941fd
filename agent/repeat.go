package agent

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Bounds of what may be repeated before the model is told: the same text, and the same calls.
const (
	maxSameText  = 2
	maxSameCalls = 3
)

// repeats notices a model that goes round in circles.
type repeats struct {
	text, calls   string
	texts, called int
}

// notice takes a reply with calls, and returns what the model has to be told; empty where there is nothing.
func (r *repeats) notice(reply *Message) string {
	text, calls := strings.TrimSpace(reply.Text()), callsOf(reply)
	if text != r.text {
		r.text, r.texts = text, 0
	}
	if calls != r.calls {
		r.calls, r.called = calls, 0
	}
	r.texts++
	r.called++
	switch {
	case r.called >= maxSameCalls:
		r.called, r.texts = 0, 0
		return "You have made the same calls with the same arguments several times in a row, and they will not bring anything else. Use what they have returned, or do something different."
	case text != "" && r.texts > maxSameText:
		r.texts = 0
		return "You are repeating yourself. Consider another way, and do not go on with what has not helped."
	}
	return ""
}

func callsOf(reply *Message) string {
	var all bytes.Buffer
	for _, use := range reply.Calls() {
		all.WriteString(use.Name + "\x00")
		if json.Compact(&all, use.Input) != nil {
			all.Write(use.Input)
		}
		all.WriteByte(0)
	}
	return all.String()
}
