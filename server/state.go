package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// inputState is what a call has asked, knows from its earlier rounds, and remembers for later ones.
type inputState struct {
	chain   string // the same in all rounds, and in no other chain
	answers map[string]givenAnswer
	memos   map[string]json.RawMessage
	progressFloor   *progressFloor
	usedKeys    map[string]string // digests of the questions of this round, by key
	openQuestions    map[string]openQuestion
	comeBack   bool // has the client come back, whether or not anything is asked
}

// givenAnswer is what a client said to the question with the digest. Without a digest it came unasked, without state, and is
// taken as given.
type givenAnswer struct {
	Digest string          `json:"d"`
	Raw    json.RawMessage `json:"r"`
}

// progressFloor is the progress that was reported under a token, below which later rounds under the same token stay silent.
type progressFloor struct {
	Token json.RawMessage `json:"t"`
	Value float64         `json:"v"`
}

// requestState is what a request state holds, sealed.
type requestState struct {
	Expires int64                      `json:"e"` // Unix seconds
	Chain   string                     `json:"c"`
	Asked   map[string]string          `json:"q,omitempty"` // digests of the open questions, by key
	Answers map[string]givenAnswer          `json:"a,omitempty"`
	Memos   map[string]json.RawMessage `json:"m,omitempty"`
	Floor   *progressFloor                     `json:"p,omitempty"`
}

// inputState returns the call's asks. The call must be locked.
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

// loadState takes up the state and the answers that the request carries. State that is not this request's is an error.
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
	a := newInputState(st.Chain)
	for key, given := range st.Answers {
		a.answers[key] = given
	}
	for key, memo := range st.Memos {
		a.memos[key] = memo
	}
	for it := rawjson.Object(c.params.responses); it.Next(); {
		if digest, asked := st.Asked[string(it.Key)]; asked {
			a.addAnswer(string(it.Key), digest, it.Value)
		}
	}
	a.progressFloor = st.Floor
	c.input = a
	return nil
}

func (a *inputState) addAnswer(key, digest string, raw []byte) {
	if !rawjson.IsNull(raw) {
		a.answers[key] = givenAnswer{digest, raw}
	}
}

// openState opens the request's state. Forged state and another request's cannot be told apart, and need not be.
func (c *call) openState() (st requestState, err error) {
	if len(c.params.state) > c.server.opts.MaxState {
		return st, errForeignState()
	}
	plain, err := c.server.states.Open(string(c.params.state), c.stateBinding())
	if err != nil || mcp.Decode(plain, &st) != nil {
		return st, errForeignState()
	}
	if !c.isLegacy() && time.Now().Unix() >= st.Expires {
		return st, mcp.InvalidParams("requestState has expired: begin the request anew")
	}
	return st, nil
}

func errForeignState() error {
	return mcp.InvalidParams("requestState is not valid for this request: begin it anew")
}

// isLegacy reports whether the request is of the era in which the edge asks, and runs the handler again itself. Its state
// never leaves the process, and lives as long as the request: how long a human takes to answer is the edge's to bound.
func (c *call) isLegacy() bool { return c.req.Revision != "" && !c.req.Revision.Modern() }

// stateBinding is what state is sealed together with: the era, the principal, the method, what it is about, and the arguments.
// Without the era a client could show state that has expired in a legacy session.
func (c *call) stateBinding() []byte {
	digest := sha256.Sum256(appendCanonical(nil, c.params.arguments))
	bound := []byte{0}
	if c.isLegacy() {
		bound[0] = 1
	}
	for _, part := range [][]byte{[]byte(c.req.Principal.ID), []byte(c.req.Method), c.params.name, digest[:]} {
		bound = append(binary.AppendUvarint(bound, uint64(len(part))), part...)
	}
	return bound
}

// inputRequired returns the result that asks the open questions; with none, the client just comes back.
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

func (c *call) sealState() (string, error) {
	a := c.input
	st := requestState{
		Expires: time.Now().Add(c.server.opts.StateTTL).Unix(), Chain: a.chain, Asked: map[string]string{},
		Answers: map[string]givenAnswer{}, Memos: a.memos, Floor: c.currentFloor(),
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
	plain, err := mcp.Encode(&st)
	if err != nil {
		return "", err
	}
	sealed := c.server.states.Seal(plain, c.stateBinding())
	if most := c.server.opts.MaxState; len(sealed) > most {
		return "", fmt.Errorf("%w: %d bytes, at most %d can be carried", ErrStateTooLarge, len(sealed), most)
	}
	return sealed, nil
}
