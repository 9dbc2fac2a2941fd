package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// rounds follows one call through the results that ask for input (basic/patterns/mrtr). Answers and
// state of one result go into the next request of the same call, and nowhere else.
type rounds struct {
	client   *Client
	method   string
	original json.RawMessage
	clock    *callClock
	limit    int // the most rounds

	count     int
	waiting   int             // consecutive rounds that brought only a request state
	consented map[string]bool // URLs that the user agreed to visit
	urlRounds int             // rounds in which the user was sent to a URL
}

// pollDelay is the wait before a retry that carries no new answers.
var pollDelay = backoff{base: 100 * time.Millisecond, cap: 5 * time.Second}

// inputRequired is a parsed input_required result. The raw parts are sent back unchanged.
type inputRequired struct {
	requests map[string]mcp.InputRequest
	state    []byte // a JSON string; nil if the server sent none
}

// answerQuestions answers the questions of resp. It returns the parameters of the retry: the
// original ones, byte for byte, with the answers and the state.
func (r *rounds) answerQuestions(ctx context.Context, resp *mcp.Response) (json.RawMessage, error) {
	if !mcpwire.MayAsk(r.method) {
		return nil, fmt.Errorf("the server asks for input in %s, where the protocol does not allow it", r.method)
	}
	if err := r.countRound(); err != nil {
		return nil, err
	}
	q, err := parseInputRequired(resp.Raw)
	if err != nil {
		return nil, err
	}
	if q.requests == nil {
		r.waiting++
		if !waitDelay(ctx, pollDelay.delay(r.waiting), nil) {
			return nil, context.Cause(ctx)
		}
		return retryParams(r.original, nil, q.state), nil
	}
	r.waiting = 0
	r.clock.pauseClock()
	defer r.clock.resumeClock()
	answers, err := r.client.answerAll(ctx, resp.Revision, q.requests)
	if err != nil {
		return nil, err
	}
	return retryParams(r.original, answers, q.state), nil
}

// countRound counts a round. The error is ErrRounds if there are more than the limit.
func (r *rounds) countRound() error {
	if r.count++; r.count > r.limit {
		return fmt.Errorf("%w: the server has asked %d times", ErrRounds, r.count)
	}
	return nil
}

func parseInputRequired(raw json.RawMessage) (q inputRequired, err error) {
	if requests := rawjson.Lookup(raw, "inputRequests"); requests != nil && !rawjson.IsNull(requests) {
		if err := mcp.Decode(requests, &q.requests); err != nil {
			return q, fmt.Errorf("the server's questions cannot be read: %w", err)
		}
	}
	if state := rawjson.Lookup(raw, "requestState"); state != nil && !rawjson.IsNull(state) {
		if state[0] != '"' {
			return q, errors.New("the server's requestState must be a string")
		}
		q.state = state
	}
	if q.requests == nil && q.state == nil {
		return q, errors.New("the server requires input without naming any")
	}
	return q, nil
}

// answerAll answers the requests one after the other, in the order of their keys, because a user
// can answer one at a time. It returns a JSON object of the answers.
func (c *Client) answerAll(ctx context.Context, revision mcp.Revision, requests map[string]mcp.InputRequest) ([]byte, error) {
	object := []byte{'{'}
	for i, key := range slices.Sorted(maps.Keys(requests)) {
		res, err := c.answerQuestion(ctx, &mcp.Request{
			Method: requests[key].Method, Params: requests[key].Params, Revision: revision,
		})
		if err != nil {
			return nil, fmt.Errorf("the server's question %q (%s) has no answer: %w", key, requests[key].Method, err)
		}
		if i > 0 {
			object = append(object, ',')
		}
		object = append(rawjson.AppendString(object, key), ':')
		if object, err = appendResult(object, res); err != nil {
			return nil, fmt.Errorf("the answer to the server's question %q (%s): %w", key, requests[key].Method, err)
		}
	}
	return append(object, '}'), nil
}

func appendResult(dst []byte, res *mcp.Result) ([]byte, error) {
	switch {
	case res == nil:
		return dst, errors.New("the handler returned nothing")
	case res.Type != "" && res.Type != mcp.ResultComplete:
		return dst, fmt.Errorf("it is of type %s: a client cannot ask back", res.Type)
	case res.Raw != nil:
		return append(dst, res.Raw...), nil
	case res.Value == nil:
		return append(dst, "{}"...), nil
	}
	return mcp.AppendEncode(dst, res.Value)
}

// retryParams returns the parameters with answers and state, and without the answers and state of
// an earlier round. nil answers or state are left out.
func retryParams(original json.RawMessage, answers, state []byte) json.RawMessage {
	out := make([]byte, 0, len(original)+len(answers)+len(state)+48)
	out, any := rawjson.AppendMembers(append(out, '{'), original, func(key []byte) bool {
		return string(key) == "inputResponses" || string(key) == "requestState"
	})
	member := func(name string, value []byte) {
		if value == nil {
			return
		}
		if any {
			out = append(out, ',')
		}
		any = true
		out = append(append(append(append(out, '"'), name...), '"', ':'), value...)
	}
	member("inputResponses", answers)
	member("requestState", state)
	return append(out, '}')
}
