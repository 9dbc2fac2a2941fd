package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// urlRetryDelay is how long the user gets to finish at a URL before the call is sent again, if the
// server does not report completion earlier.
var urlRetryDelay = backoff{base: 2 * time.Second, cap: 30 * time.Second}

// elicitURLs handles the legacy error URLElicitationRequired. It asks the user to visit each URL,
// waits until the server reports completion or some time has passed, and returns the parameters of
// the retry. It returns failed unchanged if it is another error or the user declines.
func (r *rounds) elicitURLs(ctx context.Context, failed error) (json.RawMessage, error) {
	required := r.requiredURLs(failed)
	if required == nil {
		return nil, failed
	}
	if err := r.countRound(); err != nil {
		return nil, fmt.Errorf("%w; the last error was: %w", err, failed)
	}
	r.clock.pauseClock()
	defer r.clock.resumeClock()
	v := r.client.urlElicitations.startWait(required)
	defer r.client.urlElicitations.endWait(v)
	for _, p := range required {
		if accepted, err := r.askConsent(ctx, p); err != nil {
			return nil, err
		} else if !accepted {
			return nil, failed
		}
	}
	r.urlRounds++
	if !waitDelay(ctx, urlRetryDelay.delay(r.urlRounds), v.done) {
		return nil, context.Cause(ctx)
	}
	return r.original, nil
}

// requiredURLs returns the URL elicitations that an error asks for. It returns nil for another
// error, and if this client cannot ask its user.
func (r *rounds) requiredURLs(failed error) []mcp.ElicitParams {
	var answered *mcp.Error
	opts := &r.client.opts
	if !errors.As(failed, &answered) || answered.Code != mcpwire.CodeURLElicitationRequired || !mcpwire.MayAsk(r.method) ||
		opts.Answers.Elicit == nil || !opts.Answers.ElicitURL {
		return nil
	}
	var data struct {
		Elicitations []mcp.ElicitParams `json:"elicitations"`
	}
	if mcp.Decode(answered.Data, &data) != nil {
		return nil
	}
	return data.Elicitations
}

// askConsent asks the user to visit a URL, once per call: if the server repeats the URL, the user
// is still busy with it.
func (r *rounds) askConsent(ctx context.Context, p mcp.ElicitParams) (accepted bool, err error) {
	if r.consented[p.URL] {
		return true, nil
	}
	p.Mode = mcp.ElicitURL
	res, err := r.client.askUser(ctx, &p)
	if err != nil || res.Action != mcp.ElicitAccept {
		return false, err
	}
	if r.consented == nil {
		r.consented = map[string]bool{}
	}
	r.consented[p.URL] = true
	return true, nil
}

// urlElicitations tracks the elicitations that calls wait for. The zero value is ready.
type urlElicitations struct {
	mu    sync.Mutex
	waits map[*urlWait]struct{}
}

// urlWait waits until the server has reported all its elicitations as complete.
type urlWait struct {
	pending map[string]bool // not yet reported as complete
	done    chan struct{}   // closed when pending is empty
}

func (v *urlElicitations) startWait(required []mcp.ElicitParams) *urlWait {
	w := &urlWait{pending: map[string]bool{}, done: make(chan struct{})}
	for _, p := range required {
		w.pending[p.ElicitationID] = true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.waits == nil {
		v.waits = map[*urlWait]struct{}{}
	}
	v.waits[w] = struct{}{}
	return w
}

func (v *urlElicitations) endWait(w *urlWait) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.waits, w)
}

// completeElicitation handles the server's notification that an elicitation is complete.
func (v *urlElicitations) completeElicitation(n mcp.Notification) {
	id, _ := rawjson.String(rawjson.Lookup(n.Params, "elicitationId"))
	if id == "" {
		return // a server that gives its elicitations no id cannot report them
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for w := range v.waits {
		if w.pending[id] {
			if delete(w.pending, id); len(w.pending) == 0 {
				close(w.done)
			}
		}
	}
}
