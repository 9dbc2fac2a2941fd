package agent

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// Bounds of what may be repeated before the model is told.
const (
	maxSameText    = 2 // the same text beside calls, in a row
	maxSameCalls   = 6 // the same calls in a row, whatever they return: somebody may be waiting for something
	maxSameResults = 3 // the same calls with the same results, among the last ones
	lately         = 8
)

// repeats notices a model that goes round in circles.
type repeats struct {
	text          string
	calls         uint64
	texts, called int
	last          []uint64 // of calls with their results
}

var seed = maphash.MakeSeed()

// notice takes a reply with calls and their results, and returns what the model has to be told; empty where there is nothing.
func (r *repeats) notice(reply *Message, results []mcp.Content) string {
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
	case r.again(calls, results) >= maxSameResults:
		*r = repeats{}
		return "You have made the same calls with the same arguments several times, and they will not bring anything else. Use what they have returned, or do something different."
	case r.called >= maxSameCalls:
		*r = repeats{}
		return "You have made the same calls with the same arguments many times in a row. If you are waiting for something, it may not come: consider another way, or say what you are waiting for."
	case text != "" && r.texts > maxSameText:
		*r = repeats{}
		return "You are repeating yourself. Consider another way, and do not go on with what has not helped."
	}
	return ""
}

// again counts how often the same calls have had the same results lately.
func (r *repeats) again(calls uint64, results []mcp.Content) (n int) {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, calls)
	for i := range results {
		for _, block := range results[i].ToolResult.Content {
			writeText(&h, block.Text)
			writeText(&h, string(block.Type))
			h.Write(block.Data)
			if block.Resource != nil {
				writeText(&h, block.Resource.Text)
				h.Write(block.Resource.Blob)
			}
		}
	}
	this := h.Sum64()
	r.last = append(r.last, this)
	r.last = r.last[max(0, len(r.last)-lately):]
	for _, other := range r.last {
		if other == this {
			n++
		}
	}
	return n
}

func writeText(h *maphash.Hash, text string) {
	h.WriteString(text)
	h.WriteByte(0)
}

// callsOf tells calls from others.
func callsOf(reply *Message) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var compact bytes.Buffer
	for _, use := range reply.Calls() {
		writeText(&h, use.Name)
		compact.Reset()
		input, ok := arguments(use.Input)
		if !ok || json.Compact(&compact, input) != nil {
			compact.Write(input)
		}
		h.Write(compact.Bytes())
		h.WriteByte(0)
	}
	return h.Sum64()
}
