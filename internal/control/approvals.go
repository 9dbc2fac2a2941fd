package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// Approval is the question of an agent whether a call may run, or whether a server may use the
// model.
type Approval struct {
	Key     string `json:"key,omitzero"`     // chosen by the agent, for [Client.CloseApproval]; others do not see it
	Program string `json:"program"`          // such as dowel chat
	Session string `json:"session,omitzero"` // the ID of the conversation, if it is saved
	Server  string `json:"server,omitzero"`
	Tool    string `json:"tool,omitzero"` // for people, such as files.edit; "" for the use of the model
	Effect  string `json:"effect,omitzero"`
	// Arguments is the JSON text of the arguments: as text, numbers keep their digits.
	Arguments string `json:"arguments,omitzero"`
	// Changes are the differences of the tool since the user allowed it.
	Changes []string `json:"changes,omitempty"`
	// Message is what the server asks the model.
	Message string `json:"message,omitzero"`
}

// How long an approval lasts beyond its call, in [AskAnswer].
const (
	ScopeTool   = "tool"   // this tool, as long as the agent's program runs
	ScopeServer = "server" // all tools of the server, likewise
)

// approvalOutcome is the answer to an agent that was answered on its terminal.
type approvalOutcome struct {
	// IsFirst: the question was still open.
	IsFirst bool `json:"isFirst"`
}

// newApprovalAsk returns the question of an approval. The user does not decide here on a text that
// is too long to be shown whole.
func newApprovalAsk(a *Approval) *Ask {
	ask := &Ask{Kind: askApproval, Server: a.Server, Client: a.Program, Name: a.Tool, Since: time.Now(), Approval: a, key: a.Key, decided: make(chan AskAnswer, 1)}
	if len(a.Arguments) > maxAskForm || len(a.Message) > maxAskText || len(a.Arguments) > maxAskText && !json.Valid([]byte(a.Arguments)) {
		ask.Obstacle = fmt.Sprintf("It is too long to be shown whole: decide in %s.", a.Program)
	}
	a.Key, a.Arguments, a.Message = "", shorten(a.Arguments, maxAskForm), shorten(a.Message, maxAskText)
	ask.Message = a.Message
	return ask
}

// askApproval is the kind of a question of an agent.
const askApproval = "approval"

// decideApproval passes the user's decision to the agent.
func (a *Asks) decideApproval(ask *Ask, answer AskAnswer) error {
	switch answer.Action {
	case mcp.ElicitAccept, mcp.ElicitDecline, mcp.ElicitCancel:
	default:
		return fmt.Errorf("unknown action %q: want accept, decline or cancel", answer.Action)
	}
	switch answer.Scope {
	case "", ScopeTool, ScopeServer:
	default:
		return fmt.Errorf("unknown scope %q: want nothing, %s or %s", answer.Scope, ScopeTool, ScopeServer)
	}
	if !a.closeFirst(ask, string(answer.Action), "console") {
		return errNoAsk
	}
	ask.decided <- answer
	return nil
}

// closeFirst closes a question, and reports whether it was open.
func (a *Asks) closeFirst(ask *Ask, outcome, by string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, open := range a.open {
		if open == ask {
			a.closeAskLocked(ask, outcome, by)
			return true
		}
	}
	return false
}

// serveApproval asks the user of the console whether a call of an agent may run, as long as the
// request lasts.
func (d Running) serveApproval(w http.ResponseWriter, r *http.Request) {
	var approval Approval
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxApproval)).Decode(&approval); err != nil {
		writeOutcome(w, err)
		return
	}
	w.WriteHeader(http.StatusOK)
	if http.NewResponseController(w).Flush() != nil { // an agent that is gone ends the request
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(d.Life, stop)()
	if answer, err := d.Calls.Asks.awaitApproval(ctx, newApprovalAsk(&approval)); err == nil {
		writeJSON(w, answer)
	}
}

// awaitApproval opens the question of an agent, and waits for the answer.
func (a *Asks) awaitApproval(ctx context.Context, ask *Ask) (AskAnswer, error) {
	a.openAsk(ask)
	defer a.closeFirst(ask, "unanswered", "")
	select {
	case answer := <-ask.decided:
		return answer, nil
	case <-ctx.Done():
		return AskAnswer{}, context.Cause(ctx)
	}
}

// AskApproval asks the user whether a call of an agent in this process may run, and waits for the
// answer. A call that is too long to be shown whole is declined, since no other place asks.
func (a *Asks) AskApproval(ctx context.Context, approval Approval) (AskAnswer, error) {
	ask := newApprovalAsk(&approval)
	if ask.Obstacle != "" {
		return AskAnswer{Action: mcp.ElicitDecline, Reason: "it is too long to be shown to the user whole, who is in a browser: make it shorter"}, nil
	}
	ask.Chat = approval.Session
	return a.awaitApproval(ctx, ask)
}

// AskElicitation asks the user the question of a server during a call of an agent in this process,
// and waits for the answer. chat is the ID of the conversation. A question that cannot be shown
// here is declined, since no other place asks.
func (a *Asks) AskElicitation(ctx context.Context, program, chat string, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
	answered := make(chan *mcp.ElicitResult, 1)
	ask := newAsk(&q.ElicitParams)
	if ask.Obstacle != "" {
		return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
	}
	ask.Message = trimAsker(q.Server, ask.Message)
	ask.Client, ask.Server, ask.Chat = program, q.Server, chat
	ask.deliver = func(r *mcp.ElicitResult) bool {
		answered <- r
		return true
	}
	a.openAsk(ask)
	defer a.closeAsk(ask, "unanswered", "")
	select {
	case answer := <-answered:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// findApproval returns the open question of an agent with a key, or nil.
func (a *Asks) findApproval(key string) *Ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ask := range a.open {
		if ask.Kind == askApproval && ask.key == key {
			return ask
		}
	}
	return nil
}

// maxApproval limits an approval as an agent sends it, in bytes.
const maxApproval = 8 << 20

// serveApprovalClosed closes a question that the user has answered in the agent's terminal.
func (d Running) serveApprovalClosed(w http.ResponseWriter, r *http.Request) {
	var answer AskAnswer
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		writeOutcome(w, err)
		return
	}
	ask := d.Calls.Asks.findApproval(r.PathValue("key"))
	isFirst := ask != nil && d.Calls.Asks.closeFirst(ask, string(answer.Action), "client")
	writeJSON(w, approvalOutcome{isFirst})
}

// AskApproval asks in the console of the running dowel whether a call may run, and waits for the
// answer. An error means that no answer comes.
func (c *Client) AskApproval(ctx context.Context, a Approval) (answer AskAnswer, err error) {
	resp, err := c.postJSON(ctx, "/v1/approvals", a)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return answer, errors.Join(errors.New("the running dowel has ended"), err)
	}
	return answer, nil
}

// CloseApproval tells the running dowel that the user has answered the question with a key in the
// terminal. It reports whether the question was still open.
func (c *Client) CloseApproval(ctx context.Context, key string, action mcp.ElicitAction) (isFirst bool, err error) {
	resp, err := c.postJSON(ctx, "/v1/approvals/"+url.PathEscape(key), AskAnswer{Action: action})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	var outcome approvalOutcome
	err = json.NewDecoder(resp.Body).Decode(&outcome)
	return outcome.IsFirst, err
}
