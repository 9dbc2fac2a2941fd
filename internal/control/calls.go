package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/mcp"
)

// CallRequest calls a tool, gets a prompt, or reads a resource.
type CallRequest struct {
	ItemName
	// Arguments is the JSON text of an object: as text, numbers keep their digits. "" means {}.
	Arguments string `json:"arguments,omitzero"`
	// Meta is the text of an object for _meta, or "".
	Meta string `json:"meta,omitzero"`
	// Seconds limit the time between two signs of life of the server. 0 means no limit.
	Seconds float64 `json:"seconds,omitzero"`
	// Revision is the protocol revision of the client that makes the call. "" means the newest one.
	Revision mcp.Revision `json:"revision,omitzero"`
}

// CallStatus is the state of a call.
type CallStatus string

// The states of calls, in the words of operations.
const (
	CallPending   CallStatus = "pending"
	CallAsked     CallStatus = "asked" // a question waits for the user
	CallOK        CallStatus = "ok"
	CallToolError CallStatus = "tool-error" // the result says that the tool failed
	CallFailed    CallStatus = "error"
	CallCancelled CallStatus = "cancelled"
)

// CallInfo is a call of the history.
type CallInfo struct {
	ID uint64 `json:"id"`
	CallRequest
	Start  time.Time  `json:"start"`
	Status CallStatus `json:"status"`
	MS     float64    `json:"ms,omitzero"`
	Bytes  int        `json:"bytes,omitzero"` // of the result
}

// CallEvent is an event of a call: progress, a log message, the result or an error.
type CallEvent struct {
	Kind     string    `json:"k"` // call, progress, log, ask, answer, result, error
	Call     *CallInfo `json:"call,omitempty"`
	MS       float64   `json:"ms,omitzero"` // since the start
	Progress float64   `json:"progress,omitzero"`
	Total    float64   `json:"total,omitzero"`
	Message  string    `json:"message,omitzero"`
	Level    string    `json:"level,omitzero"`
	Ask      *Ask      `json:"ask,omitempty"` // of an ask; its ID only of an answer
	// Result is the JSON text of the result: as text, numbers keep their digits.
	Result string `json:"result,omitzero"`
	// Verdict says whether structured content matches the output schema; nil without a schema.
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Limits of the history.
const (
	maxKeptCalls  = 200
	maxKeptBytes  = 16 << 20
	maxCallEvents = 1000 // of one call; further progress is dropped
	maxOpenCalls  = 50
)

// Calls makes calls for the user, and keeps the newest ones with their results in memory. It is
// safe for concurrent use.
type Calls struct {
	// Asks are the open questions of all clients' calls.
	Asks *Asks

	hub  *hub.Hub
	dial GatewayDialer
	life context.Context

	dialMu  sync.Mutex
	clients map[mcp.Revision]*client.Client // since the first call of a revision; guarded by dialMu

	running sync.WaitGroup // calls

	mu    sync.Mutex // guards the fields below
	last  uint64
	all   []*userCall // the oldest first
	bytes int
}

// isOpen reports whether the call has not ended.
func (s CallStatus) isOpen() bool { return s == CallPending || s == CallAsked }

// userCall is one call. Its fields but cancel are guarded by Calls.mu.
type userCall struct {
	info    CallInfo
	events  []CallEvent
	changed chan struct{} // closed at each change
	cancel  context.CancelCauseFunc
}

// GatewayDialer connects a client to the gateway. An empty revision leaves the choice to the
// client.
type GatewayDialer func(ctx context.Context, answers client.Answers, revision mcp.Revision) (*client.Client, error)

// NewCalls returns an empty history. dial connects to the gateway, once for each revision. Calls
// end with life.
func NewCalls(life context.Context, h *hub.Hub, dial GatewayDialer) *Calls {
	return &Calls{hub: h, dial: dial, life: life, clients: map[mcp.Revision]*client.Client{}, Asks: newAsks(life)}
}

// Close waits for the calls, which end with the life of the history, and ends the connections.
func (c *Calls) Close() error {
	c.running.Wait()
	c.Asks.running.Wait()
	c.dialMu.Lock()
	defer c.dialMu.Unlock()
	var errs []error
	for _, cl := range c.clients {
		errs = append(errs, cl.Close())
	}
	clear(c.clients)
	return errors.Join(errs...)
}

// connect returns the client of all calls of a revision.
func (c *Calls) connect(ctx context.Context, revision mcp.Revision) (*client.Client, error) {
	c.dialMu.Lock()
	defer c.dialMu.Unlock()
	if c.life.Err() != nil {
		return nil, context.Cause(c.life) // Close may have run
	}
	if cl := c.clients[revision]; cl != nil {
		return cl, nil
	}
	cl, err := c.dial(ctx, c.Answers(), revision)
	if err == nil {
		c.clients[revision] = cl
	}
	return cl, err
}

var (
	errCancelled  = errors.New("cancelled by you")
	errNoCall     = errors.New("the call is not kept any more")
	errManyCalls  = fmt.Errorf("%d calls are running: cancel some of them first", maxOpenCalls)
	errNoArgument = errors.New("the arguments must be a JSON object")
)

// Start begins a call. Arguments that do not match the schema are sent, too: the server decides.
func (c *Calls) Start(q CallRequest) (CallInfo, error) {
	item, err := findItem(c.hub, q.ItemName)
	if err != nil {
		return CallInfo{}, err
	}
	if q.Revision != "" && !q.Revision.Known() {
		return CallInfo{}, fmt.Errorf("%q is no revision of the protocol: want one of %v", q.Revision, mcp.Revisions())
	}
	q.Arguments = cmp.Or(q.Arguments, "{}")
	for _, text := range []string{q.Arguments, cmp.Or(q.Meta, "{}")} {
		if err := rawjson.CheckObject([]byte(text), func(_, _ []byte) {}); err != nil {
			return CallInfo{}, fmt.Errorf("%w: %w", errNoArgument, err)
		}
	}
	ctx, cancel := context.WithCancelCause(c.life)
	call := &userCall{changed: make(chan struct{}), cancel: cancel, info: CallInfo{CallRequest: q, Start: time.Now(), Status: CallPending}}
	if err := c.addCall(call); err != nil {
		cancel(nil)
		return CallInfo{}, err
	}
	info := call.info
	c.running.Go(func() {
		defer cancel(nil)
		result, err := c.runCall(ctx, call, item, q)
		c.storeOutcome(ctx, call, item, result, err)
	})
	return info, nil
}

// addCall numbers a call and keeps it.
func (c *Calls) addCall(call *userCall) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := 0
	for _, other := range c.all {
		if other.info.Status.isOpen() {
			open++
		}
	}
	if open >= maxOpenCalls {
		return errManyCalls
	}
	c.last++
	call.info.ID = c.last
	c.all = append(c.all, call)
	c.dropOldest()
	return nil
}

// dropOldest drops the oldest calls that have ended, down to the limits. The newest one stays.
func (c *Calls) dropOldest() {
	for i := 0; i < len(c.all)-1 && (len(c.all) > maxKeptCalls || c.bytes > maxKeptBytes); {
		if c.all[i].info.Status.isOpen() {
			i++
			continue
		}
		c.bytes -= c.all[i].info.Bytes
		c.all = slices.Delete(c.all, i, i+1)
	}
}

// addCallEvent adds an event to a call.
func (c *Calls) addCallEvent(call *userCall, e CallEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(call.events) >= maxCallEvents && (e.Kind == "progress" || e.Kind == "log") {
		return
	}
	e.MS = millisecondsSince(call.info.Start)
	call.events = append(call.events, e)
	close(call.changed)
	call.changed = make(chan struct{})
}

func millisecondsSince(start time.Time) float64 {
	return float64(time.Since(start).Microseconds()) / 1000
}

// runCall makes a call and returns its encoded result.
func (c *Calls) runCall(ctx context.Context, call *userCall, item *hubItem, q CallRequest) (json.RawMessage, error) {
	cl, err := c.connect(ctx, q.Revision)
	if err != nil {
		return nil, err
	}
	options := client.CallOptions{
		OnProgress: func(p mcp.ProgressParams) {
			c.addCallEvent(call, CallEvent{Kind: "progress", Progress: p.Progress, Total: p.Total, Message: p.Message})
		},
		OnLog: func(p mcp.LoggingMessageParams) {
			c.addCallEvent(call, CallEvent{Kind: "log", Level: string(p.Level), Message: string(p.Data)})
		},
		LogLevel: mcp.LevelDebug,
		Limits:   client.Limits{Idle: time.Duration(q.Seconds * float64(time.Second))},
	}
	if q.Meta != "" {
		if err := json.Unmarshal([]byte(q.Meta), &options.Meta); err != nil {
			return nil, err
		}
	}
	result, err := callItem(context.WithValue(ctx, callKey{}, call), cl, c.hub, item, q, options)
	if err != nil {
		return nil, err
	}
	return mcp.Encode(result)
}

// callItem sends the request of an item.
func callItem(ctx context.Context, cl *client.Client, h *hub.Hub, item *hubItem, q CallRequest, o client.CallOptions) (any, error) {
	if q.Kind == "tool" {
		return cl.CallTool(ctx, mcp.CallToolParams{Name: item.WireName, Arguments: json.RawMessage(q.Arguments)}, o)
	}
	texts := map[string]string{}
	if err := json.Unmarshal([]byte(q.Arguments), &texts); err != nil {
		return nil, fmt.Errorf("the arguments of a %s are texts: %w", q.Kind, err)
	}
	switch q.Kind {
	case "prompt":
		return cl.GetPrompt(ctx, item.WireName, texts, o)
	case "template":
		uri, err := expandTemplate(item.LocalName, texts)
		if err != nil {
			return nil, err
		}
		return cl.ReadResource(ctx, h.Catalog().WireURI(item.Upstream, uri), o)
	}
	return cl.ReadResource(ctx, item.WireName, o)
}

func expandTemplate(text string, values map[string]string) (string, error) {
	t, err := uritemplate.Parse(text)
	if err != nil {
		return "", err
	}
	all := uritemplate.Values{}
	for name, value := range values {
		all[name] = uritemplate.Text(value)
	}
	return t.Expand(all)
}

// storeOutcome stores the outcome of a call.
func (c *Calls) storeOutcome(ctx context.Context, call *userCall, item *hubItem, result json.RawMessage, err error) {
	e, status := CallEvent{Kind: "result", Result: string(result)}, CallOK
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errCancelled):
		e, status = CallEvent{Kind: "error", Message: errCancelled.Error()}, CallCancelled
	case err != nil:
		e, status = CallEvent{Kind: "error", Message: err.Error()}, CallFailed
	case string(rawjson.Lookup(result, "isError")) == "true":
		status = CallToolError
	default:
		e.Verdict = checkOutput(item, result)
	}
	c.mu.Lock()
	call.info.Status, call.info.MS, call.info.Bytes = status, millisecondsSince(call.info.Start), len(result)
	c.bytes += len(result)
	c.dropOldest()
	c.mu.Unlock()
	c.addCallEvent(call, e)
}

// checkOutput checks the structured content of a result. It returns nil for a tool without an
// output schema.
func checkOutput(item *hubItem, result json.RawMessage) *Verdict {
	rules := readDefinition(item.LocalDefinition).OutputSchema
	if rules == nil {
		return nil
	}
	content := rawjson.Lookup(result, "structuredContent")
	if content == nil {
		return &Verdict{Error: "the tool has an output schema, but the result has no structured content"}
	}
	v := checkValue(rules, content)
	return &v
}

// List returns the calls, the newest first.
func (c *Calls) List() []CallInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]CallInfo, 0, len(c.all))
	for _, call := range slices.Backward(c.all) {
		all = append(all, call.info)
	}
	return all
}

// findCall returns a call, or nil.
func (c *Calls) findCall(id uint64) *userCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.all {
		if call.info.ID == id {
			return call
		}
	}
	return nil
}

// Cancel ends a call. A call that has ended stays as it is.
func (c *Calls) Cancel(id uint64) error {
	call := c.findCall(id)
	if call == nil {
		return errNoCall
	}
	call.cancel(errCancelled)
	return nil
}

// Follow passes the events of a call to a function until the call ends: first the call itself, then
// each event, and at last the call again.
func (c *Calls) Follow(ctx context.Context, id uint64, show func(CallEvent) error) error {
	call := c.findCall(id)
	if call == nil {
		return errNoCall
	}
	for shown := -1; ; {
		c.mu.Lock()
		info, changed, ended := call.info, call.changed, !call.info.Status.isOpen()
		events := call.events[max(shown, 0):]
		ended = ended && len(call.events) > 0 && slices.Contains([]string{"result", "error"}, call.events[len(call.events)-1].Kind)
		c.mu.Unlock()
		if shown < 0 || ended || slices.ContainsFunc(events, func(e CallEvent) bool { return e.Ask != nil }) {
			if err := show(CallEvent{Kind: "call", Call: &info}); err != nil {
				return err
			}
		}
		for _, e := range events {
			if err := show(e); err != nil {
				return err
			}
		}
		shown = max(shown, 0) + len(events)
		if ended {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
