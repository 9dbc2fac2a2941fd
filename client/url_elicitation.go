package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// urlRetryDelay is how long the user is given to do what a URL is for, before the call is made again, where the server does not say
// when it is done.
var urlRetryDelay = backoff{base: 2 * time.Second, cap: 30 * time.Second}

// elicitURLs turns the legacy error that asks for visits of URLs into the parameters to try again with, once the user has
// consented to all of them and the server says that they are done, or some time has passed. Else it returns the error.
func (r *rounds) elicitURLs(ctx context.Context, failed error) (json.RawMessage, error) {
	required := r.requiredURLs(failed)
	if required == nil {
		return nil, failed
	}
	if err := r.countRound(); err != nil {
		return nil, fmt.Errorf("%w, lastly with this: %w", err, failed)
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

// requiredURLs returns the visits that an error asks for; none where it is another error, or nobody can be asked.
func (r *rounds) requiredURLs(failed error) []mcp.ElicitParams {
	var answered *mcp.Error
	opts := &r.client.opts
	if !errors.As(failed, &answered) || answered.Code != mcp.CodeURLElicitationRequired || !mcp.MayAsk(r.method) ||
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

// askConsent asks the user to visit a URL, once in a call: a server that repeats itself waits for what the user is doing.
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

// urlElicitations are what calls wait for to be done out of band. The zero value is ready.
type urlElicitations struct {
	mu   sync.Mutex
	waits map[*urlWait]struct{}
}

// urlWait waits until the server has reported all its elicitations as complete.
type urlWait struct {
	pending  map[string]bool // those that are not
	done chan struct{}   // closed when there are none
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

// completeElicitation takes the server's word that an elicitation is complete.
func (v *urlElicitations) completeElicitation(n mcp.Notification) {
	id, _ := rawjson.String(rawjson.Lookup(n.Params, "elicitationId"))
	if id == "" {
		return // nothing, or what a server that names none never reports
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
