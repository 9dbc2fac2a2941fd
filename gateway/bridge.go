package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// bridge connects an upstream's call, which asks live questions, with a client's requests, which
// are answered by input_required and repeated with the answers. The call outlives those requests.
// Between two of them it is parked.
type bridge struct {
	core         *core
	upstream     *hub.Upstream
	caller       hub.Caller
	capabilities mcp.ClientCapabilities
	ctx          context.Context // of the upstream's call
	cancel       context.CancelCauseFunc
	tool         string        // the upstream's name of the tool that is called
	answersAll   bool          // the client answers the questions of results and tasks too
	promote      chan struct{} // holds a token when the call is to become a task of the gateway's own; nil if it must not
	promoteAfter time.Duration // a request that waits for longer makes such a task of the call; 0 never
	passesRounds bool          // until the call is a task, the client answers the questions of results itself
	clock        *taskClock    // bounds a call that may be a task of the upstream; nil without a bound
	wake         chan struct{} // holds a token when there is a question
	done         chan struct{} // closed when the upstream's call has returned

	mu            sync.Mutex
	resp          *mcp.Response // result of the upstream's call, with err; valid after done is closed
	err           error
	kept          *quota.Lease // counts a result that waits for the client; nil counts nothing
	isShown       bool         // the client knows that its task has completed
	isDelivered   bool         // the client has seen the result, so it is kept only while there is room
	isForgotten   bool         // the result was dropped after isShown, and its task with it
	hosted        *hostedTask  // the task of the gateway's own that the call has become; nil for a plain call
	isAnswered    bool         // the client gets the first answer of the upstream, so the call becomes no task
	request       *mcp.Request // the client's current request; nil while parked, unless its edge asks live
	requestCtx    context.Context
	questions     map[string]*question // questions without an answer, by key
	questionCount int
	message       string // the newest status message of the call
	messageCount  float64
	unpark        func() // stops the timers of the parked call
	parkedID      int    // guarded by the lock of parkedCalls
}

// question is a question of the upstream without an answer.
type question struct {
	request mcp.InputRequest
	answer  chan json.RawMessage // has room for one
}

// errUnanswered cancels a call when its client does not come back.
var errUnanswered = errors.New("nobody has answered what the server asked")

// newBridge returns a bridge for a call that begins with req. The call keeps the values of ctx, but
// not its end.
func newBridge(ctx context.Context, c *core, u *hub.Upstream, req *mcp.Request) *bridge {
	b := &bridge{
		core: c, upstream: u, caller: callerOf(req), capabilities: req.Capabilities(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), questions: map[string]*question{},
	}
	b.ctx, b.cancel = context.WithCancelCause(hub.WithAnswerer(context.WithoutCancel(ctx), mcp.HandlerFunc(b.answerQuestion)))
	return b
}

// allowTask lets the call of a tool become a task of the gateway's own.
func (b *bridge) allowTask(tool string) {
	b.tool, b.promote, b.promoteAfter = tool, make(chan struct{}, 1), b.core.opts.TaskAfter
}

// startCall starts the upstream's call, and returns its result or its first questions.
func (b *bridge) startCall(ctx context.Context, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	if !b.core.parked.startWork() {
		b.core.hosted.releaseRoom(b)
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the gateway is shutting down")
	}
	b.attachRequest(ctx, req)
	out := upstreamRequest(req, params, b.passNotification)
	switch {
	case b.promoteAfter > 0:
		out.NoProgress = false // progress becomes the status message of a task
	case req.Peer == nil:
		out.Notify = nil
	}
	call := b.callFunc(out)
	go func() {
		defer b.core.parked.endWork()
		b.keepResult(call())
		close(b.done)
		b.cancel(nil)
		if t := b.hostedTask(); t != nil {
			b.core.hosted.endRun(t)
		} else {
			b.core.hosted.releaseRoom(b)
		}
	}()
	return b.awaitOutcome(ctx)
}

// callFunc returns the function that makes the upstream's call. A call that may become a task is
// made again if the user must open a URL first.
func (b *bridge) callFunc(out *mcp.Request) func() (*mcp.Response, error) {
	if driver := newTaskDriver(b, out); driver != nil {
		return func() (*mcp.Response, error) {
			ctx, stop := b.limitTotal(b.ctx)
			defer stop()
			return b.makeCall(ctx, driver.makeCall)
		}
	}
	roundTrip := func(ctx context.Context) (*mcp.Response, error) { return b.upstream.RoundTrip(ctx, b.caller, out) }
	if b.promote == nil {
		return func() (*mcp.Response, error) { return roundTrip(b.ctx) }
	}
	out.Params, out.ClientCapabilities = bytes.Clone(out.Params), bytes.Clone(out.ClientCapabilities) // the task outlives the client's request
	return func() (*mcp.Response, error) { return b.makeCall(b.ctx, roundTrip) }
}

// resumeCall continues a parked call with the answers of the client's repeated request.
func (b *bridge) resumeCall(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	b.attachRequest(ctx, req)
	if left := b.takeAnswers(rawjson.Lookup(req.Params, "inputResponses")); left > 0 {
		b.wakeRequest() // the open ones are asked again
	}
	return b.awaitOutcome(ctx)
}

// takeAnswers passes answers on to their questions, and returns the number of questions that are
// still open.
func (b *bridge) takeAnswers(answers json.RawMessage) (left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for it := rawjson.Object(answers); it.Next(); {
		if q := b.questions[string(it.Key)]; q != nil && rawjson.IsObject(it.Value) {
			delete(b.questions, string(it.Key))
			q.answer <- append(json.RawMessage(nil), it.Value...)
		}
	}
	return len(b.questions)
}

// attachRequest makes req the client's current request.
func (b *bridge) attachRequest(ctx context.Context, req *mcp.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.request, b.requestCtx = req, ctx
}

// awaitOutcome returns the result of the call or, if questions come first, an input_required
// result.
func (b *bridge) awaitOutcome(ctx context.Context) (*mcp.Result, error) {
	var tooSlow <-chan time.Time
	if b.promoteAfter > 0 {
		timer := time.NewTimer(b.promoteAfter)
		defer timer.Stop()
		tooSlow = timer.C
	}
	for {
		select {
		case <-b.done:
			b.detachRequest()
			return clientResult(b.takeResult())
		case <-ctx.Done():
			b.detachRequest()
			b.cancel(context.Cause(ctx))
			return nil, context.Cause(ctx)
		case <-b.promote:
			if res, err := b.hostCall(); res != nil || err != nil {
				return res, err
			}
			continue
		case <-tooSlow:
			if res, err := b.hostCall(); res != nil || err != nil {
				return res, err
			}
			continue
		case <-b.wake:
		}
		select {
		case <-b.done: // the result ends all questions
			continue
		default:
		}
		if res, err := b.parkCall(); res != nil || err != nil {
			return res, err
		}
	}
}

// detachRequest ends the client's current request.
func (b *bridge) detachRequest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.request, b.requestCtx = nil, nil
}

// parkCall parks the call and returns an input_required result with all open questions. It returns
// nil if none is open any more.
func (b *bridge) parkCall() (*mcp.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.questions) == 0 {
		return nil, nil
	}
	result := &mcp.InputRequiredResult{InputRequests: b.copyQuestions()}
	state, err := b.core.parked.addCall(b)
	if err != nil {
		b.cancel(err)
		return nil, err
	}
	if !b.asksLive() {
		b.request, b.requestCtx = nil, nil
	}
	result.RequestState = &state
	return &mcp.Result{Type: mcp.ResultInputRequired, Value: result}, nil
}

// asksLive reports whether the client's request continues while the call is parked: the edge of a
// legacy client asks the questions live. b.mu is held.
func (b *bridge) asksLive() bool { return !b.request.Revision.Modern() }

// answerQuestion answers the upstream's live questions with the client's
// answers.
func (b *bridge) answerQuestion(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	asked := mcp.InputRequest{Method: req.Method, Params: stripQuestion(req.Params, b.capabilities)}
	needs, known := mcpwire.Vocabulary(nil).InputRequest(asked)
	if !known {
		return nil, mcp.MethodNotFound(req.Method)
	}
	if missing, any := mcpwire.MissingCapabilities(b.capabilities, needs); any {
		text := (&mcp.CapabilityError{Required: missing}).Error()
		return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "%s", strings.Replace(text, "the client", "the client that made the call", 1))
	}
	if b.clock != nil {
		b.clock.Pause()
		defer b.clock.Resume()
	}
	q := &question{asked, make(chan json.RawMessage, 1)}
	key := b.addQuestion(q)
	select {
	case answer := <-q.answer:
		return &mcp.Result{Raw: answer}, nil
	case <-ctx.Done(): // the upstream has cancelled the question, or the call has ended
		b.mu.Lock()
		delete(b.questions, key)
		b.mu.Unlock()
		b.hostedTask().noteChange()
		return nil, context.Cause(ctx)
	}
}

// addQuestion opens a question and returns its key.
func (b *bridge) addQuestion(q *question) (key string) {
	b.mu.Lock()
	b.questionCount++
	key = "question-" + strconv.Itoa(b.questionCount)
	b.questions[key] = q
	b.mu.Unlock()
	b.wakeRequest()
	b.hostedTask().noteChange()
	return key
}

// wakeRequest makes the client's request look at the open questions.
func (b *bridge) wakeRequest() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// copyQuestions returns the open questions. b.mu is held.
func (b *bridge) copyQuestions() map[string]mcp.InputRequest {
	open := map[string]mcp.InputRequest{}
	for key, q := range b.questions {
		open[key] = q.request
	}
	return open
}

// openQuestions returns the open questions and the newest status message.
func (b *bridge) openQuestions() (open map[string]mcp.InputRequest, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.copyQuestions(), b.message
}

// taskCreated makes a task of the call, if the client may get one: the upstream has made one too.
func (b *bridge) taskCreated() {
	if b.promote == nil {
		return
	}
	select {
	case b.promote <- struct{}{}:
	default:
	}
}

// noteMessage takes the status message of the upstream's task. A client that waits for the call
// gets it as progress. The numbers only count the messages.
func (b *bridge) noteMessage(message string) {
	b.mu.Lock()
	if message == "" || message == b.message {
		b.mu.Unlock()
		return
	}
	b.message = message
	b.messageCount++
	n := b.messageCount
	b.mu.Unlock()
	b.hostedTask().noteChange()
	params, err := mcp.Encode(mcp.ProgressParams{Progress: n, Message: message})
	if err == nil {
		b.passNotification(mcp.Notification{Method: mcp.NotificationProgress, Params: params})
	}
}

// stripQuestion removes the parts of a live question that input requests do not have. It also
// removes includeContext if the client does not declare it: servers before 2025-11-25 could not
// know, and clients may ignore it.
func stripQuestion(params json.RawMessage, can mcp.ClientCapabilities) json.RawMessage {
	if can.Sampling != nil && can.Sampling.Context == nil && rawjson.Lookup(params, "includeContext") != nil {
		params = rawjson.Set(params, "includeContext", nil)
	}
	for _, name := range []string{"elicitationId", "task"} {
		if rawjson.Lookup(params, name) != nil {
			params = rawjson.Set(params, name, nil)
		}
	}
	for _, name := range []string{mcpwire.MetaProgressToken, mcpwire.MetaRelatedTask} {
		if meta := rawjson.Lookup(params, "_meta"); meta != nil && rawjson.Lookup(meta, name) != nil {
			params = rawjson.Replace(params, "_meta", rawjson.Set(meta, name, nil))
		}
	}
	if len(params) == 0 {
		return json.RawMessage("{}") // roots/list may have none, and some clients fail without
	}
	return params
}

// passNotification sends a notification of the call to the client's current request. Without one it
// is lost, but a message of progress is the status message of the task that the call has become.
func (b *bridge) passNotification(n mcp.Notification) {
	b.mu.Lock()
	front, ctx := b.request, b.requestCtx
	isChange := false
	if n.Method == mcp.NotificationProgress && b.promote != nil {
		message, _ := rawjson.String(rawjson.Lookup(n.Params, "message"))
		if isChange = message != "" && message != b.message; isChange {
			b.message = message
		}
	}
	b.mu.Unlock()
	if isChange {
		b.hostedTask().noteChange()
	}
	if front != nil && front.Peer != nil {
		passNotification(ctx, front, n)
	}
}
