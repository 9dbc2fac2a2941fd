package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// An upstream of 2025-11-25 may answer a call with error -32042: the user must open a URL first. A
// client repeats such a call. It cannot repeat a call that has become a task, so the gateway asks
// for the user's consent with questions of the task, and makes the call again.

// firstURLPause is how long the user gets to finish at a URL before the call is made again. The
// pause doubles with each further call, up to longestURLPause.
const (
	firstURLPause   = 2 * time.Second
	longestURLPause = 30 * time.Second
)

// makeCall makes the upstream's call with call, and again after the user has opened the URLs that
// the upstream requires for a task.
func (b *bridge) makeCall(ctx context.Context, call func(context.Context) (*mcp.Response, error)) (*mcp.Response, error) {
	agreed := map[string]bool{}
	for round := range maxDriverRounds {
		resp, err := call(ctx)
		required := requiredURLs(err)
		if required == nil || b.staysCall() {
			return resp, err
		}
		if isDeclined, err := b.askForURLs(ctx, required, agreed); err != nil {
			return nil, err
		} else if isDeclined {
			raw, err := mcpwire.EncodeResult(failedResult(errURLDeclined))
			return &mcp.Response{Type: mcp.ResultComplete, Raw: raw}, err
		}
		if err := b.awaitUser(ctx, min(firstURLPause<<min(round, 10), longestURLPause)); err != nil {
			return nil, err
		}
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "the server %s has required %d times that the user opens a URL", b.upstream.Name(), maxDriverRounds)
}

// requiredURLs returns the elicitations of error -32042, or nil for another outcome.
func requiredURLs(err error) (required []json.RawMessage) {
	answered, ok := errors.AsType[*mcp.Error](err)
	if !ok || answered.Code != mcpwire.CodeURLElicitationRequired {
		return nil
	}
	for it := rawjson.Array(rawjson.Lookup(answered.Data, "elicitations")); it.Next(); {
		required = append(required, append(json.RawMessage(nil), it.Value...))
	}
	return required
}

// staysCall reports whether the call is no task. It becomes none any more then.
func (b *bridge) staysCall() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosted == nil {
		b.isAnswered = true
	}
	return b.hosted == nil
}

// askForURLs asks the user to open URLs, each of them once. agreed holds the URLs that the user has
// agreed to.
func (b *bridge) askForURLs(ctx context.Context, required []json.RawMessage, agreed map[string]bool) (isDeclined bool, err error) {
	for _, params := range required {
		url, _ := rawjson.String(rawjson.Lookup(params, "url"))
		if agreed[url] {
			continue
		}
		res, err := b.answerQuestion(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: rawjson.Set(params, "mode", []byte(`"`+mcp.ElicitURL+`"`))})
		if refused, ok := errors.AsType[*mcp.Error](err); ok {
			return false, mcp.Errorf(jsonrpc.CodeInternal, "the server %s requires that the user opens a URL first, and the client cannot be asked: %s", b.upstream.Name(), refused.Message)
		}
		if err != nil {
			return false, err
		}
		if !rawjson.Is(rawjson.Lookup(res.Raw, "action"), string(mcp.ElicitAccept)) {
			return true, nil
		}
		agreed[url] = true
	}
	return false, nil
}

// awaitUser waits while the user is busy with a URL. The limit of the whole call does not count
// this time.
func (b *bridge) awaitUser(ctx context.Context, pause time.Duration) error {
	if b.clock != nil {
		b.clock.Pause()
		defer b.clock.Resume()
	}
	return timeout.Sleep(ctx, pause)
}
