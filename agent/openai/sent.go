package openai

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"

	"github.com/dowel-mcp/dowel/mcp"
)

// Bounds of what a conversation brings back of a call. A server that has one refuses the whole conversation, whoever made the call.
const (
	maxName = 64
	maxID   = 40
)

// sentCalls are the calls of a message whose results are to come.
type sentCalls struct {
	n    int // of all calls so far
	open []sentCall
}

type sentCall struct{ id, sent, name string }

// begin begins the calls of a message.
func (s *sentCalls) begin() { s.open = nil }

// add returns the id under which a call is sent: its own, where it has one that servers take and no other call of the message has.
func (s *sentCalls) add(use *mcp.ToolUse) string {
	s.n++
	sent := use.ID
	switch {
	case sent == "" || slices.ContainsFunc(s.open, func(c sentCall) bool { return c.sent == sent }):
		sent = replaced(fmt.Sprintf("%d %s", s.n, sent))
	case len(sent) > maxID:
		sent = replaced(sent)
	}
	s.open = append(s.open, sentCall{use.ID, sent, use.Name})
	return sent
}

// replaced is the same for the same text, so that caches hold.
func replaced(id string) string { return fmt.Sprintf("call_%x", sha256.Sum256([]byte(id)))[:maxID] }

// answered returns the id under which the call of a result has been sent, and the name of what was called.
func (s *sentCalls) answered(id string) (sent, name string) {
	i := slices.IndexFunc(s.open, func(c sentCall) bool { return c.id == id })
	if i < 0 {
		return id, ""
	}
	c := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	return c.sent, c.name
}

var notInName = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// nameOf is a called tool's name as servers take it back, which they do not of all that models make up.
func nameOf(name string) string {
	if name == "" {
		return noName
	}
	mended := notInName.ReplaceAllString(name, "_")
	return mended[:min(len(mended), maxName)]
}
