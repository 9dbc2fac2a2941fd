package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// Limits of repetition. At a limit, the model gets a note, and the counts begin anew. If
// maxSameResults is reached again within notedReplies replies, the run ends. The other two limits
// only repeat the note, because different results may be progress.
const (
	maxSameText    = 2 // replies in a row with calls and the same text
	maxSameCalls   = 6 // replies in a row with the same calls; higher, because the model may be waiting for something
	maxSameResults = 3 // replies with the same calls and the same results, among recentReplies
	recentReplies  = 8
	notedReplies   = 10 // replies after a note about the same results, in which the same again ends the run
)

// repeatDetector detects a model that repeats itself.
type repeatDetector struct {
	text                 string   // of the last reply
	calls                uint64   // the hash of the last reply's calls
	sameTexts, sameCalls int      // the numbers of replies in a row with this text and these calls
	recent               []uint64 // the hashes of the calls and results of the recent replies
	noted                int      // replies for which a note about the same results counts; 0: there was none
}

// errStuck ends the run of a model that repeats itself after a note too.
var errStuck = errors.New("the model repeats itself, also after it was told so: say in another way what is to be done, or try another model")

var hashSeed = maphash.MakeSeed()

// checkReply records a reply with calls and their results. It returns a note for the model if the
// reply reaches a limit of repetition, and "" otherwise. It returns [errStuck] if a note about the
// same results has not helped.
func (r *repeatDetector) checkReply(reply *Message, results []mcp.Content) (note string, err error) {
	text, calls := strings.TrimSpace(reply.Text()), hashCalls(reply)
	if text != r.text {
		r.text, r.sameTexts = text, 0
	}
	if calls != r.calls {
		r.calls, r.sameCalls = calls, 0
	}
	r.sameTexts++
	r.sameCalls++
	sameResults := r.countSameResults(calls, results) >= maxSameResults
	noted := r.noted > 0
	r.noted = max(0, r.noted-1)
	switch {
	case sameResults:
		note = "You have made the same calls with the same arguments several times, and they will not bring anything else. Use what they have returned, or do something different."
	case r.sameCalls >= maxSameCalls:
		note = "You have made the same calls with the same arguments many times in a row. If you are waiting for something, it may not come: consider another way, or say what you are waiting for."
	case text != "" && r.sameTexts > maxSameText:
		note = "You are repeating yourself. Consider another way, and do not go on with what has not helped."
	default:
		return "", nil
	}
	if noted && sameResults {
		return "", errStuck
	}
	left := r.noted
	if sameResults {
		left = notedReplies
	}
	*r = repeatDetector{noted: left}
	return note, nil
}

// countSameResults counts how often the same calls had the same results among the recent replies.
func (r *repeatDetector) countSameResults(calls uint64, results []mcp.Content) (n int) {
	var h maphash.Hash
	h.SetSeed(hashSeed)
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
	r.recent = append(r.recent, this)
	r.recent = r.recent[max(0, len(r.recent)-recentReplies):]
	for _, other := range r.recent {
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

// hashCalls returns a hash of the names and arguments of a reply's calls. White space in the
// arguments has no effect.
func hashCalls(reply *Message) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	var compact bytes.Buffer
	for _, use := range reply.Calls() {
		writeText(&h, use.Name)
		compact.Reset()
		input, ok := parseArguments(use.Input)
		if !ok || json.Compact(&compact, input) != nil {
			compact.Write(input)
		}
		h.Write(compact.Bytes())
		h.WriteByte(0)
	}
	return h.Sum64()
}
