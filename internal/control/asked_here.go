package control

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// enable returns the request of a client that cannot be asked as one that can, if the user has
// chosen to answer for them.
func (a *Asks) enable(req *mcp.Request) (able *mcp.Request, ok bool) {
	a.mu.Lock()
	on := a.answersForAll
	a.mu.Unlock()
	if !on || req.Capabilities().Elicitation != nil {
		return nil, false
	}
	can := req.ClientCapabilities
	if !rawjson.IsObject(can) {
		can = []byte("{}")
	}
	more := *req
	more.ClientCapabilities = rawjson.Replace(can, "elicitation", []byte(`{"form":{},"url":{}}`))
	return &more, true
}

// maxInsideRounds is the highest number of input_required results of a call that is answered here.
const maxInsideRounds = 100

// answerInside serves a request of a client that cannot be asked: the user answers its questions
// here.
func (a *Asks) answerInside(ctx context.Context, next mcp.Handler, req *mcp.Request) (*mcp.Result, error) {
	for range maxInsideRounds {
		var target audit.Target
		res, err := next.ServeMCP(audit.WithTarget(ctx, &target), req)
		if err != nil || res.Type != mcp.ResultInputRequired {
			return res, err
		}
		asked, err := decodeQuestions(res)
		if err != nil {
			return nil, err
		}
		asks := asksOf(req, target, asked)
		if len(asks) < len(asked.InputRequests) || hasSampling(asks) {
			return res, nil // the client has to answer the others
		}
		answers, err := a.askInside(ctx, asks)
		if err != nil {
			return nil, err
		}
		again := *req
		again.Params = rawjson.Replace(req.Params, "inputResponses", []byte("{}"))
		if asked.RequestState != nil {
			again.Params = rawjson.Replace(again.Params, "requestState", rawjson.AppendString(nil, *asked.RequestState))
		}
		req = addAnswers(&again, answers)
	}
	return nil, errors.New("the server has asked too often")
}

// askInside asks questions here, and waits for all answers.
func (a *Asks) askInside(ctx context.Context, asks map[string]*Ask) (map[string]json.RawMessage, error) {
	call := &waitingCall{asks: maps.Clone(asks), here: map[string]json.RawMessage{}, answered: make(chan struct{})}
	if len(asks) == 0 {
		return call.here, nil
	}
	a.mu.Lock()
	for _, key := range slices.Sorted(maps.Keys(asks)) {
		ask := asks[key]
		ask.IsAskedHere = true
		ask.deliver = func(r *mcp.ElicitResult) bool { return a.deliver(call, key, r) }
		a.openAskLocked(ask)
	}
	a.mu.Unlock()
	select {
	case <-call.answered:
		return call.here, nil
	case <-ctx.Done():
		for _, ask := range asks {
			a.closeAsk(ask, "unanswered", "")
		}
		return nil, context.Cause(ctx)
	}
}
