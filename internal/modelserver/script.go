package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Script is the behaviour of a model, turn by turn. Zero fields have no effect.
type Script struct {
	// Model and Key are the model name and the API key that requests must have.
	Model string `json:"model,omitzero"`
	Key   string `json:"key,omitzero"`
	// Quirks enable differences between servers of a protocol. Each [Protocol] documents its
	// quirks.
	Quirks []string `json:"quirks,omitzero"`
	Turns  []Turn   `json:"turns"`
}

// Turn is the response to one request.
type Turn struct {
	// Expect are texts that the last message must contain. For tool results, that means the results
	// of the last reply's calls.
	Expect []string `json:"expect,omitzero"`
	// ExpectBody are texts that the request body must contain.
	ExpectBody []string `json:"expectBody,omitzero"`
	// Take captures text of the last message with regular expressions, by name. The captured group
	// replaces {{NAME}} in texts and arguments from this turn on. An expression that does not match
	// fails the test.
	Take map[string]string `json:"take,omitzero"`
	// DelayMS is the delay of the response in milliseconds.
	DelayMS int `json:"delayMs,omitzero"`

	Reasoning string `json:"reasoning,omitzero"`
	Text      string `json:"text,omitzero"`
	Calls     []Call `json:"calls,omitzero"`
	Usage     *Usage `json:"usage,omitzero"`
	// Stop is the stop reason in the protocol's words. Empty means the usual one for the content.
	Stop string `json:"stop,omitzero"`
	// Cut closes the connection after half of the response's fragments.
	Cut bool `json:"cut,omitzero"`
	// Fail is an error to respond with instead.
	Fail *Failure `json:"fail,omitzero"`
}

// Call is a tool call. Arguments is an object, or a string that is sent as is, for arguments that
// are not JSON.
type Call struct {
	ID        string          `json:"id,omitzero"` // empty means a generated id
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
}

// Usage is the number of tokens that the turn uses.
type Usage struct {
	Input     int `json:"input"` // including Cached
	Cached    int `json:"cached,omitzero"`
	Output    int `json:"output"`
	Reasoning int `json:"reasoning,omitzero"` // part of Output
}

// Failure is a provider error. Type and Code are the provider's terms.
type Failure struct {
	Status     int    `json:"status"`
	Type       string `json:"type,omitzero"`
	Code       string `json:"code,omitzero"`
	Message    string `json:"message,omitzero"`
	RetryAfter string `json:"retryAfter,omitzero"` // header field
	// Streamed sends the error as an event after the text of the turn.
	Streamed bool `json:"streamed,omitzero"`
}

// Parse reads a script from JSON. Unknown fields are an error.
func Parse(data []byte) (s Script, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("the script cannot be read: %w", err)
	}
	return s, nil
}

// Text returns the arguments in their encoded form.
func (c *Call) Text() string {
	var text string
	switch {
	case len(c.Arguments) == 0:
		return "{}"
	case json.Unmarshal(c.Arguments, &text) == nil:
		return text
	}
	return string(c.Arguments)
}

// fillTemplates returns a copy of the turn with captured text inserted.
func (t Turn) fillTemplates(taken map[string]string) *Turn {
	if len(taken) == 0 {
		return &t
	}
	var pairs []string
	for name, value := range taken {
		pairs = append(pairs, "{{"+name+"}}", value)
	}
	all := strings.NewReplacer(pairs...)
	t.Text = all.Replace(t.Text)
	t.Calls = slices.Clone(t.Calls)
	for i := range t.Calls {
		t.Calls[i].Arguments = json.RawMessage(all.Replace(string(t.Calls[i].Arguments)))
	}
	return &t
}

// callID returns the call's id, or one generated from the indexes of the turn and the call.
func (c *Call) callID(prefix string, turn, n int) string {
	if c.ID != "" {
		return c.ID
	}
	return fmt.Sprintf("%s%d_%d", prefix, turn, n)
}

func (s *Script) hasQuirk(quirk string) bool {
	for _, q := range s.Quirks {
		if q == quirk {
			return true
		}
	}
	return false
}
