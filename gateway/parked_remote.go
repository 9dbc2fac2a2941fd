package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// replicaCalls lets a client's retry continue a call that another replica has parked. The owner
// acknowledges the retry, runs it, and sends the outcome to the replica that has the client. That
// one asks meanwhile whether the owner still runs it.
type replicaCalls struct {
	core     *core
	network  replica.Network // nil without replicas
	instance string          // of this gateway, also without replicas
	leave    func()

	mu      sync.Mutex
	waiting map[string]chan callOutcome // of retries that another replica runs, by their names
	running map[string]*foreignRetry    // that this replica runs for another, by their names
}

// foreignRetry is a retry that this replica runs for another. It is there until the other one has
// the outcome, or for outcomeLife after the end.
type foreignRetry struct {
	cancel  context.CancelCauseFunc
	outcome *callOutcome // guarded by replicaCalls.mu; nil while it runs
}

// outcomeLife is how long an outcome that could not be delivered is kept.
const outcomeLife = time.Minute

// replicaMessage is a message between the gateways of replicas.
type replicaMessage struct {
	Kind         string          `json:"kind"` // one of the constants below
	Retry        string          `json:"retry"`
	From         string          `json:"from,omitempty"` // the instance that has the client
	Upstream     string          `json:"upstream,omitempty"`
	Method       string          `json:"method,omitempty"`
	Params       json.RawMessage `json:"params,omitempty"`
	Revision     mcp.Revision    `json:"revision,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Principal    mcp.Principal   `json:"principal,omitzero"`
	Outcome      *callOutcome    `json:"outcome,omitempty"`
}

const (
	retryRun    = "run"    // run this retry
	retryCheck  = "check"  // whether it still runs
	retryCancel = "cancel" // the client has gone
	retryEnd    = "end"    // this is its outcome
	taskRequest = "task"   // answer this request about a task
)

// callOutcome is the result or the error of a retry.
type callOutcome struct {
	Type  mcp.ResultType  `json:"type,omitempty"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	Error *mcp.Error      `json:"error,omitempty"`
}

// join receives the messages of other replicas, if the keys are shared.
func (r *replicaCalls) join(c *core) {
	r.core, r.leave, r.instance = c, func() {}, "gateway-"+rand.Text()[:10]
	r.waiting, r.running = map[string]chan callOutcome{}, map[string]*foreignRetry{}
	network := replica.Of(c.opts.Keys)
	if network == nil {
		return
	}
	leave, err := network.Receive(r.instance, r.receive)
	if err != nil {
		c.opts.Logger.Error("calls that wait for answers cannot be continued at other replicas", "err", err)
		return
	}
	r.network, r.leave = network, leave
}

// splitName splits the name of a parked call. isHere reports that this gateway has parked it.
func (r *replicaCalls) splitName(name string) (owner, id string, isHere bool) {
	owner, id, _ = strings.Cut(name, "/")
	return owner, id, owner == r.instance
}

// nameOf returns the name of a parked call for the sealed state. It contains the instance, since
// the keys may outlive the process, and another one may give the same id to another call.
func (r *replicaCalls) nameOf(id string) string { return r.instance + "/" + id }

const (
	// checkInterval is the time between two questions to the owner of a retry.
	checkInterval = time.Second
	// silenceLimit is how long an owner may be silent while its process is there. A busy one
	// answers late, and the network may be lost for a moment.
	silenceLimit = 5 * time.Second
)

// runRemotely lets the owner of a parked call continue it, and returns the outcome.
func (r *replicaCalls) runRemotely(ctx context.Context, owner string, u *hub.Upstream, req *mcp.Request) (*mcp.Result, error) {
	retry, outcome := rand.Text(), make(chan callOutcome, 1)
	r.mu.Lock()
	r.waiting[retry] = outcome
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, retry)
	}()
	err := r.sendMessage(ctx, owner, replicaMessage{Kind: retryRun, Retry: retry, From: r.instance, Upstream: u.Name(), Method: req.Method,
		Params: req.Params, Revision: req.Revision, Capabilities: req.ClientCapabilities, Principal: req.Principal})
	end, err := r.awaitRetry(ctx, owner, retry, outcome, err)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, err
	case err != nil:
		return nil, ownerError(req, err)
	}
	return end.result()
}

// awaitRetry waits for the outcome of a retry, or for the end of its owner or of ctx. err is the
// error of the message with the retry. The owner may run it although its answer was late or lost.
func (r *replicaCalls) awaitRetry(ctx context.Context, owner, retry string, outcome <-chan callOutcome, err error) (*callOutcome, error) {
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	for heard := time.Now(); ; {
		switch {
		case err == nil:
			heard = time.Now()
		case errors.Is(err, replica.ErrUnreachable) && time.Since(heard) < silenceLimit:
		case len(outcome) == 0 && ctx.Err() == nil:
			return nil, err
		}
		select {
		case end := <-outcome:
			return &end, nil
		case <-ctx.Done():
			_ = r.sendMessage(context.WithoutCancel(ctx), owner, replicaMessage{Kind: retryCancel, Retry: retry}) // the owner may have ended
			return nil, context.Cause(ctx)
		case <-check.C:
		}
		var end *callOutcome
		if end, err = r.checkRetry(ctx, owner, retry); err == nil && end != nil {
			return end, nil
		}
	}
}

// checkRetry asks whether the owner still runs a retry. It returns the outcome if the message with
// it was lost.
func (r *replicaCalls) checkRetry(ctx context.Context, owner, retry string) (end *callOutcome, err error) {
	data, err := r.ask(ctx, owner, replicaMessage{Kind: retryCheck, Retry: retry})
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &end)
	}
	return end, err
}

// ownerError returns the error for a retry whose owner cannot run it.
func ownerError(req *mcp.Request, err error) error {
	if errors.Is(err, replica.ErrGone) {
		return mcp.Errorf(jsonrpc.CodeInternal, "%s: the replica that ran this call has ended, and the call with it: call again", req.Method)
	}
	return mcp.Errorf(jsonrpc.CodeInternal, "%s: the replica that runs this call cannot continue it: %v", req.Method, err)
}

// ask sends a message to another gateway and returns its answer.
func (r *replicaCalls) ask(ctx context.Context, to string, m replicaMessage) (answer []byte, err error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return r.network.Send(ctx, to, data)
}

// sendMessage is ask for a message without an answer.
func (r *replicaCalls) sendMessage(ctx context.Context, to string, m replicaMessage) error {
	_, err := r.ask(ctx, to, m)
	return err
}

// receive handles a message of another replica. It implements [replica.Handler].
func (r *replicaCalls) receive(ctx context.Context, data []byte) ([]byte, error) {
	var m replicaMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("the message of a replica cannot be read: %w", err)
	}
	switch m.Kind {
	case retryRun:
		return nil, r.runFor(m)
	case taskRequest:
		return r.handleTask(ctx, m)
	case retryCheck, retryCancel:
		r.mu.Lock()
		defer r.mu.Unlock()
		run := r.running[m.Retry]
		switch {
		case run == nil:
			return nil, errors.New("it has not got this request, or has ended the call: call again")
		case m.Kind == retryCancel:
			run.cancel(errors.New("the client has gone"))
		case run.outcome != nil:
			return json.Marshal(run.outcome)
		}
	case retryEnd:
		r.mu.Lock()
		outcome := r.waiting[m.Retry]
		r.mu.Unlock()
		if outcome != nil && m.Outcome != nil {
			select {
			case outcome <- *m.Outcome:
			default:
			}
		}
	}
	return nil, nil
}

// runFor continues a parked call for a client of another replica. It returns once the call is
// claimed; the outcome is sent later.
func (r *replicaCalls) runFor(m replicaMessage) error {
	u := r.core.hub.Upstream(m.Upstream)
	if u == nil {
		return fmt.Errorf("it has no server %s", m.Upstream)
	}
	req := &mcp.Request{Method: m.Method, Params: m.Params, Revision: m.Revision, ClientCapabilities: m.Capabilities, Principal: m.Principal}
	b, err := r.core.parked.claimHere(u, req)
	if err != nil {
		return err
	}
	if !r.core.parked.startWork() {
		return errors.New("it is shutting down")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r.mu.Lock()
	run := &foreignRetry{cancel: cancel}
	r.running[m.Retry] = run
	r.mu.Unlock()
	go func() {
		defer r.core.parked.endWork()
		defer cancel(nil)
		end := newOutcome(b.resumeCall(ctx, req))
		r.mu.Lock()
		run.outcome = end
		r.mu.Unlock()
		err := r.sendOutcome(m, end)
		if err != nil && !errors.Is(err, replica.ErrGone) { // the other replica asks for it
			r.core.opts.Logger.Warn("the outcome of a call did not reach the replica of its client yet", "err", err)
			time.AfterFunc(outcomeLife, func() { r.forgetRetry(m.Retry) })
			return
		}
		r.forgetRetry(m.Retry)
	}()
	return nil
}

func (r *replicaCalls) forgetRetry(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, name)
}

// sendOutcome sends the outcome of a retry to the replica that has its client. If it is too large,
// the client gets an error that says so.
func (r *replicaCalls) sendOutcome(m replicaMessage, end *callOutcome) error {
	message := replicaMessage{Kind: retryEnd, Retry: m.Retry, Outcome: end}
	err := r.sendMessage(context.Background(), m.From, message)
	if errors.Is(err, replica.ErrTooLarge) {
		message.Outcome = &callOutcome{Error: mcp.Errorf(jsonrpc.CodeInternal, "%s: the call has ended, but its result cannot be passed on: %v", m.Method, err)}
		err = r.sendMessage(context.Background(), m.From, message)
	}
	return err
}

// newOutcome encodes what a call has returned.
func newOutcome(res *mcp.Result, err error) *callOutcome {
	if err != nil {
		if known, ok := errors.AsType[*mcp.Error](err); ok {
			return &callOutcome{Error: known}
		}
		return &callOutcome{Error: mcp.Errorf(jsonrpc.CodeInternal, "%v", err)}
	}
	raw := res.Raw
	if raw == nil {
		if raw, err = mcp.Encode(res.Value); err != nil {
			return &callOutcome{Error: mcp.Errorf(jsonrpc.CodeInternal, "the result cannot be passed on: %v", err)}
		}
	}
	return &callOutcome{Type: res.Type, Raw: raw}
}

// result returns what the call has returned at the owner.
func (o callOutcome) result() (*mcp.Result, error) {
	if o.Error != nil {
		return nil, o.Error
	}
	return &mcp.Result{Type: o.Type, Raw: o.Raw}, nil
}
