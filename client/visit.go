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

// visiting is how long the user is given to do what a URL is for, before the call is made again, where the server does not say
// when it is done.
var visiting = backoff{base: 2 * time.Second, cap: 30 * time.Second}

// visit turns the legacy error that asks for visits of URLs into the parameters to try again with, once the user has
// consented to all of them and the server says that they are done, or some time has passed. Else it returns the error.
func (r *rounds) visit(ctx context.Context, failed error) (json.RawMessage, error) {
	required := r.required(failed)
	if required == nil {
		return nil, failed
	}
	if err := r.next(); err != nil {
		return nil, fmt.Errorf("%w, lastly with this: %w", err, failed)
	}
	r.clock.pause()
	defer r.clock.resume()
	v := r.client.visits.begin(required)
	defer r.client.visits.end(v)
	for _, p := range required {
		if accepted, err := r.consent(ctx, p); err != nil {
			return nil, err
		} else if !accepted {
			return nil, failed
		}
	}
	r.visits++
	if !sleep(ctx, visiting.delay(r.visits), v.done) {
		return nil, context.Cause(ctx)
	}
	return r.original, nil
}

// required returns the visits that an error asks for; none where it is another error, or nobody can be asked.
func (r *rounds) required(failed error) []mcp.ElicitParams {
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

// consent asks the user to visit a URL, once in a call: a server that repeats itself waits for what the user is doing.
func (r *rounds) consent(ctx context.Context, p mcp.ElicitParams) (accepted bool, err error) {
	if r.visited[p.URL] {
		return true, nil
	}
	p.Mode = mcp.ElicitURL
	res, err := r.client.elicit(ctx, &p)
	if err != nil || res.Action != mcp.ElicitAccept {
		return false, err
	}
	if r.visited == nil {
		r.visited = map[string]bool{}
	}
	r.visited[p.URL] = true
	return true, nil
}

// visits are what calls wait for to be done out of band. The zero value is ready.
type visits struct {
	mu   sync.Mutex
	open map[*visit]struct{}
}

// visit waits until the server has reported all its elicitations as complete.
type visit struct {
	ids  map[string]bool // those that are not
	done chan struct{}   // closed when there are none
}

func (v *visits) begin(required []mcp.ElicitParams) *visit {
	w := &visit{ids: map[string]bool{}, done: make(chan struct{})}
	for _, p := range required {
		w.ids[p.ElicitationID] = true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open == nil {
		v.open = map[*visit]struct{}{}
	}
	v.open[w] = struct{}{}
	return w
}

func (v *visits) end(w *visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, w)
}

// completed takes the server's word that an elicitation is complete.
func (v *visits) completed(n mcp.Notification) {
	id, _ := rawjson.String(rawjson.Lookup(n.Params, "elicitationId"))
	if id == "" {
		return // nothing, or what a server that names none never reports
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for w := range v.open {
		if w.ids[id] {
			if delete(w.ids, id); len(w.ids) == 0 {
				close(w.done)
			}
		}
	}
}
