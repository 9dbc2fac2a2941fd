package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Script is a conversation from the model's side, turn by turn. A zero field demands nothing.
type Script struct {
	// Model is the name, and Key the API key, that requests must have.
	Model string `json:"model,omitzero"`
	Key   string `json:"key,omitzero"`
	// Quirks select differences between servers of a protocol; each protocol lists its own.
	Quirks []string `json:"quirks,omitzero"`
	Turns  []Turn   `json:"turns"`
}

// Turn is the answer to one request.
type Turn struct {
	// Expect are texts that the conversation's last message must hold. The results of the last
	// reply's calls count as its last message.
	Expect []string `json:"expect,omitzero"`
	// ExpectBody are texts that the request's body must hold.
	ExpectBody []string `json:"expectBody,omitzero"`
	// Take are regular expressions by names. From this turn on, the match of an expression's
	// group in the last message replaces {{NAME}} in texts and arguments. An expression without a
	// match is an error.
	Take map[string]string `json:"take,omitzero"`
	// DelayMS is the time before the answer begins, in milliseconds.
	DelayMS int `json:"delayMs,omitzero"`

	Reasoning string `json:"reasoning,omitzero"`
	Text      string `json:"text,omitzero"`
	Calls     []Call `json:"calls,omitzero"`
	Usage     *Usage `json:"usage,omitzero"`
	// Stop is the reason for the end in the protocol's words; empty: the content decides.
	Stop string `json:"stop,omitzero"`
	// Cut breaks the connection after half of the answer's fragments.
	Cut bool `json:"cut,omitzero"`
	// Fail is an error to answer with instead.
	Fail *Failure `json:"fail,omitzero"`
}

// Call is a tool call. Arguments is an object, or a string that is sent as it is, also if it is
// not JSON.
type Call struct {
	ID        string          `json:"id,omitzero"` // empty: one is made
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
}

// Usage counts the tokens of a turn.
type Usage struct {
	Input     int `json:"input"` // all, with Cached
	Cached    int `json:"cached,omitzero"`
	Output    int `json:"output"`
	Reasoning int `json:"reasoning,omitzero"` // of Output
}

// Failure is an error of the provider, with the provider's own Type and Code.
type Failure struct {
	Status     int    `json:"status"`
	Type       string `json:"type,omitzero"`
	Code       string `json:"code,omitzero"`
	Message    string `json:"message,omitzero"`
	RetryAfter string `json:"retryAfter,omitzero"` // the header field
	// Streamed sends the failure as an event, after the text of the turn.
	Streamed bool `json:"streamed,omitzero"`
}

// Load reads a script from a JSON file.
func Load(path string) (s Script, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	return Parse(data)
}

// Parse reads a script from JSON. An unknown field is an error.
func Parse(data []byte) (s Script, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("the script cannot be read: %w", err)
	}
	return s, nil
}

// Text returns the arguments as they are written into the answer.
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

// fillIn returns the turn with the matches of Take in its texts and arguments.
func (t Turn) fillIn(taken map[string]string) *Turn {
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

// callID returns the call's id, or one made from the indices of its turn and call.
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
