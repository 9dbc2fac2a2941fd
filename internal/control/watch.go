package control

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/mcp"
)

// CompletionRequest asks for values of an argument of a prompt or a resource template.
type CompletionRequest struct {
	ItemName
	Argument string `json:"argument"`
	Value    string `json:"value"` // the text so far
	// Settled are the other arguments that have a value.
	Settled map[string]string `json:"settled,omitempty"`
}

// Complete returns values that the server proposes for an argument, or none if it proposes none.
func (c *Calls) Complete(ctx context.Context, q CompletionRequest) ([]string, error) {
	item, err := findItem(c.hub, q.ItemName)
	if err != nil {
		return nil, err
	}
	cl, err := c.connect(ctx, "")
	if err != nil {
		return nil, err
	}
	ref := mcp.PromptRef(item.WireName)
	if item.Kind == catalog.Template {
		ref = mcp.ResourceRef(item.WireName)
	}
	found, err := cl.Complete(ctx, ref, q.Argument, q.Value, q.Settled)
	if err != nil {
		return nil, err
	}
	return found.Values, nil
}

func (d Running) serveCompletion(w http.ResponseWriter, r *http.Request) {
	var q CompletionRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		writeOutcome(w, err)
		return
	}
	ctx, end := requestContext(r, d.Life)
	defer end()
	values, err := d.Calls.Complete(ctx, q)
	writeResult(w, map[string]any{"values": append([]string{}, values...)}, err)
}

// WatchState is the state of a subscription.
type WatchState string

// The states of subscriptions. A refused or ended one has a message.
const (
	WatchRequested    WatchState = "requested"
	WatchAcknowledged WatchState = "acknowledged"
	WatchRefused      WatchState = "refused"
	WatchEnded        WatchState = "ended"
)

// WatchEvent is an event of a subscription: another state, or a change.
type WatchEvent struct {
	Kind    string     `json:"k"` // state, change, or gap: changes may be missing
	State   WatchState `json:"state,omitzero"`
	Message string     `json:"message,omitzero"`
	URI     string     `json:"uri,omitzero"` // of the changed resource, as clients see it
	Time    time.Time  `json:"t"`
}

// Watch subscribes to a resource, and passes the events to a function until ctx ends, the server
// refuses, or the function fails.
func (c *Calls) Watch(ctx context.Context, name ItemName, show func(WatchEvent) error) error {
	item, err := findItem(c.hub, name)
	if err != nil {
		return err
	}
	tell := func(state WatchState, cause error) error {
		e := WatchEvent{Kind: "state", State: state, Time: time.Now()}
		if cause != nil {
			e.Message = cause.Error()
		}
		return show(e)
	}
	if err := tell(WatchRequested, nil); err != nil {
		return err
	}
	cl, err := c.connect(ctx, "")
	if err != nil {
		return tell(WatchRefused, err)
	}
	watch, err := cl.Watch(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{item.WireName}})
	if err != nil {
		return tell(WatchRefused, err)
	}
	defer watch.Close()
	if err := tell(WatchAcknowledged, nil); err != nil {
		return err
	}
	for change, err := range watch.Changes() {
		if err != nil {
			return tell(WatchEnded, err)
		}
		if err := show(describeChange(change)); err != nil {
			return err
		}
	}
	return nil
}

func describeChange(change client.Change) WatchEvent {
	e := WatchEvent{Kind: "change", URI: change.URI, Time: time.Now()}
	if change.Gap {
		e.Kind = "gap"
	}
	return e
}

// serveWatch answers with the events of a subscription, one JSON object a line.
func (d Running) serveWatch(w http.ResponseWriter, r *http.Request) {
	var name ItemName
	if err := json.NewDecoder(r.Body).Decode(&name); err != nil {
		writeOutcome(w, err)
		return
	}
	ctx, end := requestContext(r, d.Life)
	defer end()
	lines, begun := newLineWriter(w), false
	err := d.Calls.Watch(ctx, name, func(e WatchEvent) error {
		begun = true
		return lines.writeLine(e)
	})
	if !begun {
		writeOutcome(w, err)
	}
}
