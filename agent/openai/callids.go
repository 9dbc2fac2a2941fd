package openai

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/mcp"
)

// Limits for the calls in a conversation. A server that has them refuses a conversation with a
// longer name or id, whichever provider made the call.
const (
	maxCallName = 64 // bytes
	maxCallID   = 40 // bytes
)

// callIDs gives the calls of a conversation ids that servers accept, and finds the call of a
// result. A call keeps its own id if possible.
type callIDs struct {
	count int          // of all calls so far
	open  []sentCallID // calls of the last message that have no result yet
}

type sentCallID struct{ id, sent, name string }

// startMessage begins a message of the assistant. Results refer to the calls of the last message.
func (c *callIDs) startMessage() { c.open = nil }

// addCall returns the id under which use is sent: its own, unless that is empty, too long or taken
// by another call of the message.
func (c *callIDs) addCall(use *mcp.ToolUse) string {
	c.count++
	sent := use.ID
	switch {
	case sent == "" || slices.ContainsFunc(c.open, func(o sentCallID) bool { return o.sent == sent }):
		sent = hashedID(fmt.Sprintf("%d %s", c.count, sent))
	case len(sent) > maxCallID:
		sent = hashedID(sent)
	}
	c.open = append(c.open, sentCallID{use.ID, sent, use.Name})
	return sent
}

// hashedID depends on text alone, so that a later request repeats the same bytes.
func hashedID(text string) string {
	return fmt.Sprintf("call_%x", sha256.Sum256([]byte(text)))[:maxCallID]
}

// takeCall returns the id under which the call of a result was sent, and the name of its tool.
// Of calls with the same id the first one without a result counts.
func (c *callIDs) takeCall(id string) (sent, name string) {
	i := slices.IndexFunc(c.open, func(o sentCallID) bool { return o.id == id })
	if i < 0 {
		return id, ""
	}
	call := c.open[i]
	c.open = slices.Delete(c.open, i, i+1)
	return call.sent, call.name
}

var invalidInName = lazyregexp.New(`[^a-zA-Z0-9_-]`)

// acceptedName returns the name of a called tool as servers accept it. Models make up names that
// servers refuse.
func acceptedName(name string) string {
	if name == "" {
		return unknownName
	}
	accepted := invalidInName().ReplaceAllString(name, "_")
	return accepted[:min(len(accepted), maxCallName)]
}
