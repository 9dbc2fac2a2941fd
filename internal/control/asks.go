package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/schemaform"
	"github.com/dowel-mcp/dowel/mcp"
)

// Ask is a question of a server during a call of the user.
type Ask struct {
	ID      uint64 `json:"id"`
	Server  string `json:"server,omitzero"`
	Message string `json:"message,omitzero"`
	// URL is the address that the user is asked to visit, or "" for a form.
	URL       string            `json:"url,omitzero"`
	Form      *schemaform.Field `json:"form,omitempty"`
	FormError string            `json:"formError,omitzero"`

	rules    json.RawMessage
	answered chan *mcp.ElicitResult // holds the first answer
}

// AskAnswer is the user's answer to an [Ask].
type AskAnswer struct {
	Action  mcp.ElicitAction `json:"action"`
	Content string           `json:"content,omitzero"` // the JSON text of the filled-in form
}

// callKey is the context key of the *userCall.
type callKey struct{}

var (
	errNoAsk     = errors.New("the question is answered already, or its call has ended")
	errUnrelated = errors.New("the question belongs to no call of the console")
)

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
	ask := &Ask{Server: call.info.Server, Message: q.Message, URL: q.URL, rules: q.RequestedSchema, answered: make(chan *mcp.ElicitResult, 1)}
	if q.Mode != mcp.ElicitURL {
		var err error
		if ask.Form, err = schemaform.Build(q.RequestedSchema); err != nil {
			ask.FormError = err.Error()
		} else {
			ask.Form.Extra = nil // forms of questions have no other properties
		}
	}
	c.mu.Lock()
	c.lastAsk++
	ask.ID = c.lastAsk
	c.asks[ask.ID] = ask
	call.info.Status = CallAsked
	c.mu.Unlock()
	c.note(call, CallEvent{Kind: "ask", Ask: ask})
	var answer *mcp.ElicitResult
	select {
	case answer = <-ask.answered:
	case <-ctx.Done():
	}
	c.mu.Lock()
	delete(c.asks, ask.ID)
	call.info.Status = CallPending
	c.mu.Unlock()
	if answer == nil {
		c.note(call, CallEvent{Kind: "answer", Ask: &Ask{ID: ask.ID}, Message: "the call has ended"})
		return nil, context.Cause(ctx)
	}
	c.note(call, CallEvent{Kind: "answer", Ask: &Ask{ID: ask.ID}, Message: string(answer.Action)})
	return answer, nil
}

// Answer answers a question. The first answer counts. Content that does not match the question's form
// is refused.
func (c *Calls) Answer(id uint64, a AskAnswer) error {
	c.mu.Lock()
	ask := c.asks[id]
	c.mu.Unlock()
	if ask == nil {
		return errNoAsk
	}
	result := &mcp.ElicitResult{Action: a.Action}
	switch a.Action {
	case mcp.ElicitDecline, mcp.ElicitCancel:
	case mcp.ElicitAccept:
		if ask.URL != "" {
			break
		}
		if v := checkValue(ask.rules, []byte(a.Content)); !v.OK && (len(v.Issues) > 0 || !json.Valid([]byte(a.Content))) {
			return describeIssues(v)
		}
		result.Content = json.RawMessage(a.Content)
	default:
		return fmt.Errorf("unknown action %q: want accept, decline or cancel", a.Action)
	}
	select {
	case ask.answered <- result:
		return nil
	default:
		return errNoAsk
	}
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

func (d Running) serveAnswer(w http.ResponseWriter, r *http.Request) {
	var a AskAnswer
	err := json.NewDecoder(r.Body).Decode(&a)
	if err == nil {
		err = d.Calls.Answer(pathID(r), a)
	}
	writeOutcome(w, err)
}
