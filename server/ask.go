package server

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// Errors of asking. Use [errors.Is] to find them.
var (
	// ErrInputRequired reports that the client must answer a question first. The handler must
	// return it; the server sends the question and runs the handler again with the answer. If the
	// handler returns something else, the server sends the question all the same.
	ErrInputRequired = errors.New("input required")
	// ErrDeclined reports that the user declined.
	ErrDeclined = errors.New("the user declined")
	// ErrCancelled reports that the user dismissed the question without a choice.
	ErrCancelled = errors.New("the user dismissed the question")

	errCannotAsk = errors.New("only the handlers of tools, prompts and resources can ask, before they return")
	// errStateTooLarge reports that a call exceeds [Options.MaxState].
	errStateTooLarge = errors.New("the answers and remembered steps of the call are too large")
)

// Ask asks the user to fill in a form. The fields of the struct T become the form's fields; if T is
// a string, bool, number or a named type of these, the form has one field, without a label. Package
// schema documents the tags of form fields. [AskRaw] takes a hand-written form.
//
// Until the answer arrives, the error is [ErrInputRequired]: return it. It is [ErrDeclined] or
// [ErrCancelled] if the user refuses, an [*mcp.CapabilityError] if the client cannot ask its user,
// and a description of the mistake if T cannot be a form or ctx is not the context of a running
// handler of a tool, prompt or resource. The key identifies the question and must
// be unique within the call. The question is asked again if the answer does not match the form or
// if the question has changed. Do not ask for secrets: use [AskURL].
func Ask[T any](ctx context.Context, key, message string) (T, error) {
	var answer T
	err := AskAll(ctx, FormQuestion(key, message, &answer))
	return answer, err
}

// AskRaw is [Ask] for a question in the protocol's own form. If the action is accept, the answer's
// content matches the schema. Decline and cancel are not errors here.
func AskRaw(ctx context.Context, key string, params mcp.ElicitParams) (*mcp.ElicitResult, error) {
	var answer *mcp.ElicitResult
	err := AskAll(ctx, rawQuestion(key, params, &answer))
	return answer, err
}

// AskAll asks several questions in one round. It returns nil when all have answers. If the user
// refuses one, it returns the error of that question without waiting for the others.
func AskAll(ctx context.Context, questions ...Question) error {
	c := callFrom(ctx)
	if c == nil || !mcpwire.MayAsk(c.req.Method) {
		return errCannotAsk
	}
	var asked []openQuestion
	var pendingURLs []Question
	var failed error
	var needs mcp.ClientCapabilities // of all questions
	for _, q := range questions {
		open, err := c.prepareQuestion(ctx, q, &needs)
		switch {
		case errors.Is(err, errURLPending):
			pendingURLs = append(pendingURLs, q)
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
		return c.awaitURLs(ctx, pendingURLs)
	}
	if missing, any := mcpwire.MissingCapabilities(c.req.Capabilities(), needs); any {
		return &mcp.CapabilityError{Required: missing}
	}
	return c.openQuestions(asked)
}

// openQuestion is a question that the client has not answered yet.
type openQuestion struct {
	key, digest string
	request     mcp.InputRequest
}

// prepareQuestion returns the question to send to the client, or nil if it has an answer. It adds
// to needs the capabilities that the client must have for the question. The error is errURLPending
// if the user has agreed to visit a URL but has not finished there.
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
	required, known := c.server.vocabulary.InputRequest(q.request)
	if !known {
		return nil, fmt.Errorf("no extension of the server knows the input request %s", q.request.Method)
	}
	if required.Sampling != nil && c.isLegacy() && c.req.Revision < mcp.Revision20251125 {
		required.Sampling.Context = nil // before 2025-11-25 every client with sampling could be asked for context
	}
	*needs = mcpwire.MergeCapabilities(*needs, required)
	return open, nil
}

// lookupAnswer reads the answer to a question. It returns errAskAgain if the call has no valid
// answer.
func (c *call) lookupAnswer(q Question, digest string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errCannotAsk
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
	raw := mcpwire.AdaptAnswer(c.req.Revision, q.request, given.Raw)
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

// openQuestions records the questions, which the server sends after the handler has returned. It
// returns ErrInputRequired.
func (c *call) openQuestions(asked []openQuestion) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errCannotAsk
	}
	for _, q := range asked {
		c.input.openQuestions[q.key] = q
	}
	return fmt.Errorf("%w: %s", ErrInputRequired, asked[0].key)
}

// questionDigest identifies a question, so that an answer to an earlier question of the same key is
// not used.
func questionDigest(r mcp.InputRequest) string {
	sum := sha256.Sum256(append(append([]byte(r.Method), 0), r.Params...))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
