package server

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/mcp"
)

// Errors of asking, for errors.Is.
var (
	// ErrInputRequired says that a question goes out. The handler passes it up, and runs again with the answer. A call with
	// an open question asks it, whatever its handler returns.
	ErrInputRequired = errors.New("input required")
	// ErrDeclined says that the user said no.
	ErrDeclined = errors.New("the user declined")
	// ErrCancelled says that the user went away without a choice.
	ErrCancelled = errors.New("the user dismissed the question")
	// ErrCannotAsk says that the context is not that of a tool, prompt or resource at work: nothing else can ask.
	ErrCannotAsk = errors.New("only the handlers of tools, prompts and resources can ask, before they return")
	// ErrStateTooLarge says that answers and remembered steps exceed what a client is asked to carry,
	// Options.MaxState.
	ErrStateTooLarge = errors.New("the answers and remembered steps of the call are too large")
)

// AskOptions refine a question. The zero value is ready.
type AskOptions struct {
	// Title names the field where T is a single value.
	Title string
	// Schema replaces the form that is inferred from T, which must be able to hold what it accepts: a flat object of
	// primitives.
	Schema json.RawMessage
}

// Ask asks the user to fill a form, whose fields are those of the struct T; a T that is a string, bool, number or named type
// of these is a form of one field. Package schema says which tags form fields have.
//
// The error is [ErrInputRequired] until the answer is there, [ErrDeclined] or [ErrCancelled] if there is none, an
// [*mcp.CapabilityError] if the client cannot ask its user, and says what is wrong with a T that is no form. A question is
// known by its key, unique within the call, and asked again if the answer does not match the form or the question has
// changed. Do not ask for secrets: use [AskURL].
func Ask[T any](ctx context.Context, key, message string, opts ...AskOptions) (T, error) {
	var answer T
	err := AskAll(ctx, FormQuestion(key, message, &answer, opts...))
	return answer, err
}

// AskRaw is [Ask] for a question as the protocol has it. The answer's content matches the schema where the action is accept;
// decline and cancel are no errors here.
func AskRaw(ctx context.Context, key string, params mcp.ElicitParams) (*mcp.ElicitResult, error) {
	var answer *mcp.ElicitResult
	err := AskAll(ctx, rawQuestion(key, params, &answer))
	return answer, err
}

// AskAll asks several questions in one round. It returns nil once all are answered; a question without a proper answer, such
// as one that is declined, is an error at once.
func AskAll(ctx context.Context, questions ...Question) error {
	c := callFrom(ctx)
	if c == nil || !mcp.MayAsk(c.req.Method) {
		return ErrCannotAsk
	}
	var asked []openQuestion
	var visits []Question
	var failed error
	var needs mcp.ClientCapabilities // of all questions
	for _, q := range questions {
		open, err := c.prepareQuestion(ctx, q, &needs)
		switch {
		case errors.Is(err, errURLPending):
			visits = append(visits, q)
		case err != nil && failed == nil:
			failed = err
		case open != nil:
			asked = append(asked, *open)
		}
	}
	switch {
	case failed != nil:
		return failed
	case len(asked) == 0:
		return c.awaitURLs(ctx, visits)
	}
	if missing, any := mcp.Missing(c.req.Capabilities(), needs); any {
		return &mcp.CapabilityError{Required: missing}
	}
	return c.openQuestions(asked)
}

// openQuestion is one that the client has yet to answer.
type openQuestion struct {
	key, digest string
	request     mcp.InputRequest
}

// prepareQuestion looks for the answer to a question: nil and nil mean that there is one. A question that the client can be asked is
// returned, and what the client must declare to be asked it is added to needs. The error is errNotDone for a visit that the
// user has consented to and that has not happened.
func (c *call) prepareQuestion(ctx context.Context, q Question, needs *mcp.ClientCapabilities) (*openQuestion, error) {
	if q.key == "" {
		return nil, errors.New("a question needs a key")
	}
	if q.invalid != nil {
		return nil, fmt.Errorf("question %s: %w", q.key, q.invalid)
	}
	if q.isDone != nil {
		done, err := q.isDone(ctx)
		if done {
			c.reportURLDone(q)
		}
		if done || err != nil {
			return nil, err
		}
	}
	open := &openQuestion{q.key, questionDigest(q.request), c.withElicitationID(q)}
	err := c.lookupAnswer(q, open.digest)
	if !errors.Is(err, errAskAgain) {
		return nil, err
	}
	own, known := c.server.vocabulary.InputRequest(q.request)
	if !known {
		return nil, fmt.Errorf("no extension of the server knows the input request %s", q.request.Method)
	}
	if own.Sampling != nil && c.isLegacy() && c.req.Revision < mcp.Revision20251125 {
		own.Sampling.Context = nil // any client with sampling may be asked for context: there was nothing to declare
	}
	*needs = needs.And(own)
	return open, nil
}

// lookupAnswer reads the answer to a question: errAskAgain if there is none that fits.
func (c *call) lookupAnswer(q Question, digest string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return ErrCannotAsk
	}
	a := c.inputState()
	if other, used := a.usedKeys[q.key]; used && other != digest {
		return fmt.Errorf("the key %q is used for two questions of one call", q.key)
	}
	a.usedKeys[q.key] = digest
	given, ok := a.answers[q.key]
	if !ok || given.Digest != "" && given.Digest != digest {
		return errAskAgain
	}
	raw := mcp.AdaptAnswer(c.req.Revision, q.request, given.Raw)
	err := q.readAnswer(raw)
	if errors.Is(err, errAskAgain) {
		delete(a.answers, q.key)
		return err
	}
	a.answers[q.key] = givenAnswer{Digest: digest, Raw: raw}
	if err != nil && !errors.Is(err, errURLPending) {
		return fmt.Errorf("%s: %w", q.key, err)
	}
	return err
}

func (c *call) openQuestions(asked []openQuestion) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return ErrCannotAsk
	}
	for _, q := range asked {
		c.input.openQuestions[q.key] = q
	}
	return fmt.Errorf("%w: %s", ErrInputRequired, asked[0].key)
}

// questionDigest tells a question from another one of the same key.
func questionDigest(r mcp.InputRequest) string {
	sum := sha256.Sum256(append(append([]byte(r.Method), 0), r.Params...))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
