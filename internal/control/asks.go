package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/schemaform"
	"github.com/dowel-mcp/dowel/mcp"
)

// Ask is an open question of a server during a call, or of an agent before a call.
type Ask struct {
	ID uint64 `json:"id"`
	// Kind is form, url, sampling or approval.
	Kind   string `json:"kind"`
	Server string `json:"server,omitzero"`
	// Client is the name of the client that made the call. Method and Name identify the called
	// item; Name includes the server's name.
	Client string `json:"client,omitzero"`
	Method string `json:"method,omitzero"`
	Name   string `json:"name,omitzero"`
	// Call is the number of the call if the console made it, else 0.
	Call uint64 `json:"call,omitzero"`
	// Chat is the ID of the conversation if its agent runs in this process, else "".
	Chat  string    `json:"chat,omitzero"`
	Since time.Time `json:"since,omitzero"`
	// Expires is when the call fails without an answer. Zero means that it waits.
	Expires time.Time `json:"expires,omitzero"`
	Message string    `json:"message,omitzero"`
	// URL is the address that the user is asked to visit.
	URL       string            `json:"url,omitzero"`
	Form      *schemaform.Field `json:"form,omitempty"`
	FormError string            `json:"formError,omitzero"`
	// Obstacle says why the question cannot be answered here, or "".
	Obstacle string `json:"obstacle,omitzero"`
	// IsAskedHere means that only dowel asks, because the client cannot ask its user.
	IsAskedHere bool `json:"isAskedHere,omitzero"`
	// Stays means that the client keeps showing the question after it is answered here, until its
	// user closes it there: the protocol cannot tell it about the answer.
	Stays bool `json:"stays,omitzero"`
	// Approval is the question of an agent; nil of a server.
	Approval *Approval `json:"approval,omitempty"`

	key     string                       // of an approval
	decided chan AskAnswer               // passes the answer to an agent on; nil of a server
	rules   json.RawMessage              // the schema of the answer
	deliver func(*mcp.ElicitResult) bool // passes the answer on; false if there is one already; Asks.mu is held
}

// AskAnswer is the user's answer to an [Ask].
type AskAnswer struct {
	Action  mcp.ElicitAction `json:"action"`
	Content string           `json:"content,omitzero"` // the JSON text of the filled-in form
	// Scope is how long an approval lasts: "" for this call, or [ScopeTool] or [ScopeServer].
	Scope string `json:"scope,omitzero"`
	// Reason tells the model why a call is refused.
	Reason string `json:"reason,omitzero"`
}

// AskList is the list of all open questions, the oldest first.
type AskList struct {
	Asks []Ask `json:"asks"`
	// AnswersForAll means that dowel asks its user for clients that cannot ask theirs.
	AnswersForAll bool `json:"answersForAll"`
	// Closed are the latest closed questions, the newest first.
	Closed []audit.Record `json:"closed,omitempty"`
}

// Limits of questions, in bytes if no other unit is given. A longer text is cut off. A question
// with a larger form or larger parameters can be answered by its client only.
const (
	maxAskText   = 16 << 10
	maxAskForm   = 64 << 10
	maxAskParams = 256 << 10
	maxWaiting   = 256 // calls of clients; the oldest are not shown any more
	maxClosed    = 20
	askTimeout   = 10 * time.Minute
)

var errNoAsk = errors.New("the question is answered already, or its call has ended")

// Asks holds the open questions of servers, during calls of the console and of clients. A question
// can be answered here and by its client; the first answer counts. It is safe for concurrent use.
type Asks struct {
	// Record is called with each closed question and its outcome, unless it is nil. Set it before
	// the first use.
	Record func(audit.Record)

	life    context.Context
	running sync.WaitGroup // continued calls

	mu            sync.Mutex // guards the fields below, and the fields asks and here of each waitingCall
	last          uint64
	open          []*Ask // the oldest first
	closed        []audit.Record
	waiting       []*waitingCall
	answersForAll bool
	changed       chan struct{} // closed at the next change, and then replaced
}

func newAsks(life context.Context) *Asks { return &Asks{life: life, changed: make(chan struct{})} }

// newAsk returns a question of an elicitation.
func newAsk(p *mcp.ElicitParams) *Ask {
	ask := &Ask{Kind: "form", Message: p.Message, rules: p.RequestedSchema, Since: time.Now()}
	if len(ask.Message) > maxAskText {
		ask.Message = strings.ToValidUTF8(ask.Message[:maxAskText], "") + "…"
	}
	if p.Mode == mcp.ElicitURL {
		ask.Kind, ask.URL = "url", p.URL
		return ask
	}
	if len(ask.rules) > maxAskForm {
		ask.rules, ask.Obstacle = nil, "Its form is too large to be shown here."
		return ask
	}
	var err error
	if ask.Form, err = schemaform.Build(ask.rules); err != nil {
		ask.FormError = err.Error()
	} else {
		ask.Form.Extra = nil // the user cannot add further members
	}
	return ask
}

// openAsk opens a question.
func (a *Asks) openAsk(ask *Ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.openAskLocked(ask)
}

// openAskLocked is openAsk for a caller that holds a.mu.
func (a *Asks) openAskLocked(ask *Ask) {
	a.last++
	ask.ID = a.last
	a.open = append(a.open, ask)
	a.wakeFollowers()
}

// closeAsk closes a question, and records its outcome: the action and who took it, or "unanswered".
func (a *Asks) closeAsk(ask *Ask, outcome, by string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeAskLocked(ask, outcome, by)
}

// closeAskLocked is closeAsk for a caller that holds a.mu. It does nothing for a closed question.
func (a *Asks) closeAskLocked(ask *Ask, outcome, by string) {
	i := slices.Index(a.open, ask)
	if i < 0 {
		return
	}
	a.open = slices.Delete(a.open, i, i+1)
	a.wakeFollowers()
	method := mcp.MethodElicit
	switch ask.Kind {
	case "sampling":
		method = mcp.MethodCreateMessage
	case askApproval:
		method = "approval"
	}
	r := audit.Record{Time: ask.Since, Client: ask.Client, Method: method, Server: ask.Server, Name: ask.Name,
		Outcome: outcome, By: by, Reason: shorten(ask.Message, 500), Milliseconds: millisecondsSince(ask.Since)}
	a.closed = append([]audit.Record{r}, a.closed[:min(len(a.closed), maxClosed-1)]...)
	if a.Record != nil && ask.Kind != askApproval { // the agent records its decisions
		a.Record(r)
	}
}

// shorten cuts text to n bytes.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// wakeFollowers wakes everybody who follows the questions. a.mu is held.
func (a *Asks) wakeFollowers() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// List returns the open questions.
func (a *Asks) List() AskList {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := AskList{Asks: make([]Ask, 0, len(a.open)), AnswersForAll: a.answersForAll, Closed: a.closed}
	for _, ask := range a.open {
		l.Asks = append(l.Asks, *ask)
	}
	return l
}

// countOpen returns the number of open questions, and a channel that is closed at the next change.
func (a *Asks) countOpen() (n int, changed <-chan struct{}) {
	if a == nil {
		return 0, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open), a.changed
}

// AnswerForAll chooses whether questions to clients that cannot be asked are asked here. The choice
// holds until dowel ends.
func (a *Asks) AnswerForAll(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answersForAll = on
	a.wakeFollowers()
}

// findAsk returns an open question, or nil.
func (a *Asks) findAsk(id uint64) *Ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.IndexFunc(a.open, func(ask *Ask) bool { return ask.ID == id }); i >= 0 {
		return a.open[i]
	}
	return nil
}

// Answer answers a question. The first answer counts. Content that does not match the question's
// form is refused.
func (a *Asks) Answer(id uint64, answer AskAnswer) error {
	ask := a.findAsk(id)
	if ask == nil {
		return errNoAsk
	}
	if ask.Obstacle != "" {
		return errors.New(ask.Obstacle)
	}
	if ask.Kind == askApproval {
		return a.decideApproval(ask, answer)
	}
	result := &mcp.ElicitResult{Action: answer.Action}
	switch answer.Action {
	case mcp.ElicitDecline, mcp.ElicitCancel:
	case mcp.ElicitAccept:
		if ask.URL != "" {
			break
		}
		if v := checkValue(ask.rules, []byte(answer.Content)); !v.OK && (len(v.Issues) > 0 || !json.Valid([]byte(answer.Content))) {
			return describeIssues(v)
		}
		result.Content = json.RawMessage(answer.Content)
	default:
		return fmt.Errorf("unknown action %q: want accept, decline or cancel", answer.Action)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.open, ask) || !ask.deliver(result) {
		return errNoAsk
	}
	a.closeAskLocked(ask, string(answer.Action), "console")
	return nil
}

// describeIssues returns the faults of an answer in one line.
func describeIssues(v Verdict) error {
	words := []string{}
	for _, issue := range v.Issues {
		words = append(words, strings.TrimPrefix(strings.TrimPrefix(issue.Path, "/")+": "+issue.Message, ": "))
	}
	if v.Error != "" {
		words = append(words, v.Error)
	}
	return errors.New(strings.Join(words, "; "))
}

// trimAsker returns the message of a question without the name of the server that the gateway puts
// before it.
func trimAsker(server, message string) string {
	return strings.TrimPrefix(message, mcpwire.AskerPrefix(server))
}

// callKey is the context key of the *userCall.
type callKey struct{}

var errUnrelated = errors.New("the question belongs to no call of the console")

// Answers returns the answers of the connection: the user answers the questions of a call.
func (c *Calls) Answers() client.Answers {
	return client.Answers{Elicit: c.askUser, ElicitURL: true}
}

// askUser adds a question to its call and waits for the answer.
func (c *Calls) askUser(ctx context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
	call, ok := ctx.Value(callKey{}).(*userCall)
	if !ok {
		return nil, errUnrelated
	}
	answered := make(chan *mcp.ElicitResult, 1)
	ask := newAsk(&q.ElicitParams)
	ask.Message = trimAsker(call.info.Server, ask.Message)
	ask.Client, ask.Server, ask.Name, ask.Call = "console", call.info.Server, call.info.Name, call.info.ID
	ask.Method = cmp.Or(map[string]string{"tool": mcp.MethodCallTool, "prompt": mcp.MethodGetPrompt}[call.info.Kind], mcp.MethodReadResource)
	ask.deliver = func(r *mcp.ElicitResult) bool {
		answered <- r
		return true
	}
	c.setStatus(call, CallAsked)
	c.Asks.openAsk(ask)
	c.addCallEvent(call, CallEvent{Kind: "ask", Ask: ask})
	var answer *mcp.ElicitResult
	select {
	case answer = <-answered:
	case <-ctx.Done():
		c.Asks.closeAsk(ask, "unanswered", "")
	}
	c.setStatus(call, CallPending)
	if answer == nil {
		c.addCallEvent(call, CallEvent{Kind: "answer", Ask: &Ask{ID: ask.ID}, Message: "the call has ended"})
		return nil, context.Cause(ctx)
	}
	c.addCallEvent(call, CallEvent{Kind: "answer", Ask: &Ask{ID: ask.ID}, Message: string(answer.Action)})
	return answer, nil
}

func (c *Calls) setStatus(call *userCall, s CallStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.info.Status = s
}

// addAsks adds the paths of questions.
func (d Running) addAsks(mux *http.ServeMux, protect func(http.HandlerFunc) http.HandlerFunc) {
	asks := d.Calls.Asks
	mux.HandleFunc("GET /v1/asks", protect(d.serveState(func() any { return asks.List() }, func(m *moment) any { return m.asks })))
	mux.HandleFunc("POST /v1/asks", protect(func(w http.ResponseWriter, r *http.Request) {
		var choice AskList
		err := json.NewDecoder(r.Body).Decode(&choice)
		if err == nil {
			asks.AnswerForAll(choice.AnswersForAll)
		}
		writeOutcome(w, err)
	}))
	mux.HandleFunc("POST /v1/asks/{id}", protect(func(w http.ResponseWriter, r *http.Request) {
		var a AskAnswer
		err := json.NewDecoder(r.Body).Decode(&a)
		if err == nil {
			err = asks.Answer(pathID(r), a)
		}
		writeOutcome(w, err)
	}))
}
