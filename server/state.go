package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// inputState holds the open questions of a call, the answers to earlier questions, and the results
// that the handler remembers for later rounds.
type inputState struct {
	chain         string // random id of the call; the same in all its rounds
	answers       map[string]givenAnswer
	memos         map[string]json.RawMessage // remembered results, by key
	progressFloor *progressFloor
	usedKeys      map[string]string // digests of this round's questions, by key
	openQuestions map[string]openQuestion
	comeBack      bool // the client must call again, even without a question
}

// givenAnswer is a client's answer. Digest identifies the question that it answers. It is empty if
// the client sent the answer without a request state, before the handler asked; the answer is then
// used for any question with its key.
type givenAnswer struct {
	Digest string          `json:"d"`
	Raw    json.RawMessage `json:"r"`
}

// progressFloor is the highest progress that was reported under a token. Later rounds with the same
// token report only higher values, because progress must increase.
type progressFloor struct {
	Token json.RawMessage `json:"t"`
	Value float64         `json:"v"`
}

// requestState is the sealed content of a request state.
type requestState struct {
	Expires int64                      `json:"e"` // Unix seconds
	Chain   string                     `json:"c"`
	Asked   map[string]string          `json:"q,omitempty"` // digests of the open questions, by key
	Answers map[string]givenAnswer     `json:"a,omitempty"`
	Memos   map[string]json.RawMessage `json:"m,omitempty"`
	Floor   *progressFloor             `json:"p,omitempty"`
}

// inputState returns the call's input state and creates it if necessary. The caller holds c.mu.
func (c *call) inputState() *inputState {
	if c.input == nil {
		c.input = newInputState(rand.Text())
	}
	return c.input
}

func newInputState(chain string) *inputState {
	return &inputState{
		chain: chain, answers: map[string]givenAnswer{}, memos: map[string]json.RawMessage{}, usedKeys: map[string]string{},
		openQuestions: map[string]openQuestion{},
	}
}

// loadState reads the state and the answers in a repeated request. It returns an error if the state
// belongs to another request.
func (c *call) loadState() error {
	if !c.params.retry {
		return nil
	}
	if c.params.state == nil {
		a := c.inputState()
		for it := rawjson.Object(c.params.responses); it.Next(); {
			a.addAnswer(string(it.Key), "", it.Value)
		}
		return nil
	}
	st, err := c.openState()
	if err != nil {
		return err
	}
	a := st.restoreInput()
	for it := rawjson.Object(c.params.responses); it.Next(); {
		if digest, asked := st.Asked[string(it.Key)]; asked {
			a.addAnswer(string(it.Key), digest, it.Value)
		}
	}
	c.input = a
	return nil
}

// restoreInput returns the input state without the answers to the open questions.
func (st *requestState) restoreInput() *inputState {
	a := newInputState(st.Chain)
	maps.Copy(a.answers, st.Answers)
	maps.Copy(a.memos, st.Memos)
	a.progressFloor = st.Floor
	return a
}

func (a *inputState) addAnswer(key, digest string, raw []byte) {
	if !rawjson.IsNull(raw) {
		a.answers[key] = givenAnswer{digest, raw}
	}
}

// openState decrypts the request's state. A forged state and the state of another request cannot be
// told apart, so both get the same error.
func (c *call) openState() (st requestState, err error) {
	if len(c.params.state) > c.server.opts.MaxState {
		return st, errForeignState()
	}
	plain, err := c.server.states.Open(string(c.params.state), c.stateBinding())
	if err != nil || mcp.Decode(plain, &st) != nil {
		return st, errForeignState()
	}
	if !c.isLegacy() && time.Now().Unix() >= st.Expires {
		return st, mcp.InvalidParams("requestState has expired: send the request again without it")
	}
	return st, nil
}

func errForeignState() error {
	return mcp.InvalidParams("requestState is not valid for this request: send the request again without it")
}

// isLegacy reports whether the client is legacy: the transport then asks the questions and runs the
// handler again. The state of a legacy call never leaves the process, so it does not expire; the
// transport limits the time for an answer.
func (c *call) isLegacy() bool { return isLegacy(c.req) }

// isLegacy reports whether the sender of a request is legacy.
func isLegacy(req *mcp.Request) bool { return req.Revision != "" && !req.Revision.Modern() }

// stateBinding returns the data that a state is bound to: the era, the principal, the method, the
// item and the arguments. Without the era, a client could use an expired state in a legacy session.
func (c *call) stateBinding() []byte {
	digest := sha256.Sum256(rawjson.AppendCanonical(nil, c.params.arguments))
	bound := []byte{0}
	if c.isLegacy() {
		bound[0] = 1
	}
	for _, part := range [][]byte{[]byte(c.req.Principal.ID), []byte(c.req.Method), c.params.name, digest[:]} {
		bound = append(binary.AppendUvarint(bound, uint64(len(part))), part...)
	}
	return bound
}

// inputRequired returns the result that asks the open questions. If there are none, the client
// repeats the call with the state alone.
func (c *call) inputRequired() (*mcp.Result, error) {
	sealed, err := c.sealState()
	if err != nil {
		return nil, err
	}
	requests := make(map[string]mcp.InputRequest, len(c.input.openQuestions))
	for key, q := range c.input.openQuestions {
		requests[key] = q.request
	}
	result := c.server.newResult(&mcp.InputRequiredResult{InputRequests: requests, RequestState: &sealed})
	result.Type = mcp.ResultInputRequired
	return result, nil
}

// collectState returns the state for the next round, or for the next run of the handler for a
// legacy client. c.input must not be nil.
func (c *call) collectState() *requestState {
	a := c.input
	st := &requestState{
		Chain: a.chain, Asked: map[string]string{}, Answers: map[string]givenAnswer{}, Memos: a.memos, Floor: c.currentFloor(),
	}
	for key, given := range a.answers {
		if given.Digest != "" {
			st.Answers[key] = given
		}
	}
	for key, q := range a.openQuestions {
		st.Asked[key] = q.digest
		delete(st.Answers, key)
	}
	return st
}

func (c *call) sealState() (string, error) {
	st := c.collectState()
	st.Expires = time.Now().Add(c.server.opts.StateTTL).Unix()
	plain, err := mcp.Encode(st)
	if err != nil {
		return "", err
	}
	sealed := c.server.states.Seal(plain, c.stateBinding())
	if most := c.server.opts.MaxState; len(sealed) > most {
		return "", fmt.Errorf("%w: %d bytes, at most %d can be carried", errStateTooLarge, len(sealed), most)
	}
	return sealed, nil
}
