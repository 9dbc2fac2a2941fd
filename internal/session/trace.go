package session

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// Trace is a conversation with everything that led to it, in the order of time.
type Trace struct {
	Header
	Entries []Entry `json:"entries"`
	// First is the number of the first of them, from 0 on; the older ones are left out.
	First int `json:"first,omitzero"`
	// Size is the size of the file in bytes, as it was read.
	Size int64 `json:"size"`
	// Damaged is the number of unreadable lines.
	Damaged int `json:"damaged,omitzero"`
	// Prompts is the number of recorded requests to models.
	Prompts int `json:"prompts"`
	// Mode says which tools run in a conversation of the console; "" in others.
	Mode string `json:"mode,omitzero"`
}

// Kinds of entries.
const (
	EntryUser      = "user"      // the user's words
	EntryReply     = "reply"     // a step: a reply of the model, with its calls
	EntryCompacted = "compacted" // older messages were replaced by a summary
	EntryModel     = "model"     // another model replies from now on
	EntryRequest   = "request"   // a request to the model that has no reply in the conversation
)

// Entry is a part of a trace.
type Entry struct {
	Kind string    `json:"kind"`
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text,omitzero"` // other content than text is described in it
	// Size is the length of the complete text in bytes if it is cut, else 0.
	Size int `json:"size,omitzero"`
	// Step counts the replies of the model from 1 on.
	Step int `json:"step,omitzero"`
	// Prompt is the number of the request from 1 on, or 0 if it was not recorded.
	Prompt int `json:"prompt,omitzero"`
	// Milliseconds are from the request to the end of the reply, if both are recorded.
	Milliseconds int64        `json:"ms,omitzero"`
	Usage        *agent.Usage `json:"usage,omitempty"`
	HasReasoning bool         `json:"hasReasoning,omitzero"`
	IsCut        bool         `json:"isCut,omitzero"` // the reply reached the limit of its length
	Calls        []CallEntry  `json:"calls,omitempty"`
}

// CallEntry is a call of a tool in a reply.
type CallEntry struct {
	ID        string `json:"id"`
	Name      string `json:"name"` // as the model calls the tool
	Arguments string `json:"arguments"`
	// Status is running, ok, error, refused or lost (without a result).
	Status string `json:"status"`
	Result string `json:"result,omitzero"`
	Size   int    `json:"size,omitzero"` // of the complete result or arguments if they are cut, else 0
	// Milliseconds are the time of the call, without the wait for an approval.
	Milliseconds int64     `json:"ms,omitzero"`
	Started      time.Time `json:"started,omitzero"`
	// Decision says who has let the call run or not, if a person or the mode has.
	Decision *CallDecision `json:"decision,omitempty"`
}

// CallDecision is the decision about a call.
type CallDecision struct {
	Allowed bool   `json:"allowed"`
	By      string `json:"by"`
	Reason  string `json:"reason,omitzero"`
	At      string `json:"at,omitzero"` // where the user has decided; "" on the terminal
}

// Cut removes all but the newest entries, and cuts texts to n bytes.
func (t *Trace) Cut(entries, n int) {
	if over := len(t.Entries) - entries; over > 0 {
		t.Entries, t.First = t.Entries[over:], over
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		e.Text, e.Size = cutText(e.Text, n)
		for j := range e.Calls {
			c := &e.Calls[j]
			c.Result, c.Size = cutText(c.Result, n)
			if len(c.Arguments) > n {
				c.Arguments, c.Size = cutText(c.Arguments, n)
			}
		}
	}
}

// cutText returns the beginning of a text of more than n bytes and the size of all of it, or the
// text and 0.
func cutText(text string, n int) (string, int) {
	if len(text) <= n {
		return text, 0
	}
	return strings.ToValidUTF8(text[:n], ""), len(text)
}

// ReadTrace reads the trace of a session's file.
func ReadTrace(path string) (*Trace, error) {
	b := traceBuilder{calls: map[string]place{}}
	err := readRecords(path, &b.trace, func(r *record) {
		b.addRecord(r)
		b.said.applyRecord(r)
	})
	if err != nil {
		return nil, err
	}
	b.flushPrompt()
	return &b.trace, nil
}

// readRecords calls take with each record behind the first one, and describes the file in t.
func readRecords(path string, t *Trace, take func(*record)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var s Session
	for text, err := range readLines(file) {
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", path, err)
		}
		var r record
		bad := json.Unmarshal(text, &r) != nil
		if t.Size == 0 {
			if err := s.readHeader(&r, bad); err != nil {
				return fmt.Errorf("%s %w", path, err)
			}
			t.Header = s.header
		} else if bad {
			t.Damaged++
		} else {
			take(&r)
		}
		t.Size += int64(len(text))
	}
	if t.Size == 0 {
		return fmt.Errorf("%s is not a session: it has no line", path)
	}
	return nil
}

// place is the place of a call in a trace.
type place struct{ entry, call int }

// traceBuilder makes a trace of records.
type traceBuilder struct {
	trace   Trace
	said    conversation
	calls   map[string]place // by the ID of the call; the last one counts
	steps   int
	prompt  int             // the number of the last request without a reply yet, or 0
	asked   time.Time       // of prompt
	dropped []agent.Message // by keep; they may come again
}

func (b *traceBuilder) addRecord(r *record) {
	at := time.Time{}
	if r.At != nil {
		at = *r.At
	}
	switch {
	case r.Prompt != nil:
		b.trace.Prompts++
		b.flushPrompt()
		b.prompt, b.asked = b.trace.Prompts, at
	case r.Keep != nil:
		b.dropped = slices.Clone(b.said[min(len(b.said), max(0, *r.Keep)):])
	case r.Message != nil && (r.Again || b.comesAgain(r.Message)): // it is in the trace already
	case r.Message != nil:
		b.addMessage(r.Message, at)
	case r.Result != nil && r.Result.ToolResult != nil:
		b.addResult(r.Result.ToolResult, at)
	case r.Event != "":
		b.addEvent(r.Event, r.Data, at)
	}
	if r.Message == nil && r.Keep == nil {
		b.dropped = nil
	}
}

// comesAgain reports whether a message is the next one that keep has dropped, in a file without
// marks.
func (b *traceBuilder) comesAgain(m *agent.Message) bool {
	if len(b.dropped) == 0 {
		return false
	}
	old := b.dropped[0]
	b.dropped = b.dropped[1:]
	return old.Role == m.Role && strings.HasPrefix(m.Text(), old.Text())
}

func (b *traceBuilder) addMessage(m *agent.Message, at time.Time) {
	if m.Role != mcp.RoleAssistant {
		if text := DescribeContent(m.Content); text != "" {
			b.trace.Entries = append(b.trace.Entries, Entry{Kind: EntryUser, At: at, Text: text})
		}
		for _, c := range m.Content { // results that were stored with the message
			if c.ToolResult != nil {
				b.addResult(c.ToolResult, at)
			}
		}
		return
	}
	b.steps++
	e := Entry{Kind: EntryReply, At: at, Step: b.steps, Text: DescribeContent(m.Content), Usage: m.Usage, HasReasoning: len(m.Reasoning) > 0, IsCut: m.Cut, Prompt: b.prompt}
	if b.prompt > 0 {
		e.Milliseconds = at.Sub(b.asked).Milliseconds()
	}
	b.prompt = 0
	for _, use := range m.Calls() {
		b.calls[use.ID] = place{len(b.trace.Entries), len(e.Calls)}
		e.Calls = append(e.Calls, CallEntry{ID: use.ID, Name: use.Name, Arguments: string(use.Input), Status: "lost"})
	}
	b.trace.Entries = append(b.trace.Entries, e)
}

// findCall returns the call with an ID, or nil.
func (b *traceBuilder) findCall(id string) *CallEntry {
	at, ok := b.calls[id]
	if !ok {
		return nil
	}
	return &b.trace.Entries[at.entry].Calls[at.call]
}

func (b *traceBuilder) addResult(r *mcp.ToolResultContent, at time.Time) {
	call := b.findCall(r.ToolUseID)
	if call == nil || call.Result != "" {
		return
	}
	call.Result, call.Status = DescribeContent(r.Content), "ok"
	switch {
	case call.Decision != nil && !call.Decision.Allowed:
		call.Status = "refused"
	case r.IsError:
		call.Status = "error"
	}
	if !call.Started.IsZero() {
		call.Milliseconds = at.Sub(call.Started).Milliseconds()
	}
}

func (b *traceBuilder) addEvent(name string, data json.RawMessage, at time.Time) {
	switch name {
	case eventStarted:
		if call := b.findCall(decodeNote[startedNote](data).Call); call != nil {
			call.Started, call.Status = at, "running"
		}
	case eventDecided:
		note := decodeNote[decidedNote](data)
		if call := b.findCall(note.Call); call != nil {
			call.Decision = &CallDecision{note.Allowed, note.By, note.Reason, note.At}
		}
	case eventCompacted:
		b.flushPrompt() // it asked for the summary
		note := decodeNote[compactedNote](data)
		b.trace.Entries = append(b.trace.Entries, Entry{Kind: EntryCompacted, At: at, Text: fmt.Sprintf("from about %d to %d tokens", note.Before, note.After)})
	case EventMode:
		b.trace.Mode = decodeNote[modeNote](data).Mode
	case EventModel:
		note := decodeNote[struct{ Name, Provider, Model string }](data)
		text := strings.Join(slices.DeleteFunc([]string{note.Name, note.Provider, note.Model}, func(s string) bool { return s == "" }), " · ")
		b.trace.Entries = append(b.trace.Entries, Entry{Kind: EntryModel, At: at, Text: text})
	}
}

// flushPrompt adds the last request if it has no reply: a summary, a server's use of the model, or
// a request that failed.
func (b *traceBuilder) flushPrompt() {
	if b.prompt > 0 {
		b.trace.Entries = append(b.trace.Entries, Entry{Kind: EntryRequest, At: b.asked, Prompt: b.prompt})
	}
	b.prompt = 0
}

// DescribeContent returns the text of content without calls and their results. Images and other
// binary data are described in brackets.
func DescribeContent(content []mcp.Content) string {
	var parts []string
	for _, block := range content {
		if block.ToolUse == nil && block.ToolResult == nil {
			parts = append(parts, block.String())
		}
	}
	return strings.Join(parts, "\n")
}
