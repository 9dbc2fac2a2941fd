package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Script is what a model says, turn by turn. The zero value of each field asks for nothing.
type Script struct {
	// Model is the name that requests must have, and Key the one that they must carry.
	Model string `json:"model,omitzero"`
	Key   string `json:"key,omitzero"`
	// Quirks are ways in which servers of this protocol differ; each protocol says which it knows.
	Quirks []string `json:"quirks,omitzero"`
	Turns  []Turn   `json:"turns"`
}

// Turn is the answer to one request.
type Turn struct {
	// Expect are texts that the conversation's last message has to hold, or in the case of results those of the last reply's calls.
	Expect []string `json:"expect,omitzero"`
	// ExpectBody are texts that the request as such has to hold.
	ExpectBody []string `json:"expectBody,omitzero"`
	// Take are regular expressions by names: what their group matches in the last message stands for {{NAME}} in the texts and
	// arguments from this turn on. One that does not match is a request that is not as it is expected.
	Take map[string]string `json:"take,omitzero"`
	// DelayMS is how long the model thinks before the answer begins, in milliseconds.
	DelayMS int `json:"delayMs,omitzero"`

	Reasoning string `json:"reasoning,omitzero"`
	Text      string `json:"text,omitzero"`
	Calls     []Call `json:"calls,omitzero"`
	Usage     *Usage `json:"usage,omitzero"`
	// Stop is the reason for the end in the protocol's words; empty: as the content has it.
	Stop string `json:"stop,omitzero"`
	// Cut breaks the connection in the middle of the answer: behind half of its fragments.
	Cut bool `json:"cut,omitzero"`
	// Fail is an error to answer with instead.
	Fail *Failure `json:"fail,omitzero"`
}

// Call is a tool call. Arguments is an object, or a string to be sent as it is, as for arguments that are not JSON.
type Call struct {
	ID        string          `json:"id,omitzero"` // empty: one is made
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
}

// Usage is what the turn took, in tokens.
type Usage struct {
	Input     int `json:"input"` // all, Cached among it
	Cached    int `json:"cached,omitzero"`
	Output    int `json:"output"`
	Reasoning int `json:"reasoning,omitzero"` // of Output
}

// Failure is an error of the provider's. Type and Code are its own words for it.
type Failure struct {
	Status     int    `json:"status"`
	Type       string `json:"type,omitzero"`
	Code       string `json:"code,omitzero"`
	Message    string `json:"message,omitzero"`
	RetryAfter string `json:"retryAfter,omitzero"` // the header field
	// Streamed sends it as an event, behind the text of the turn.
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

// Parse reads a script from JSON. A field that it does not know is an error.
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

// filled returns the turn with what was taken in its texts and arguments.
func (t Turn) filled(taken map[string]string) *Turn {
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

// id returns the call's, or one made of its place: the turn and the call, from 0 on.
func (c *Call) id(prefix string, turn, n int) string {
	if c.ID != "" {
		return c.ID
	}
	return fmt.Sprintf("%s%d_%d", prefix, turn, n)
}

func (s *Script) has(quirk string) bool {
	for _, q := range s.Quirks {
		if q == quirk {
			return true
		}
	}
	return false
}
