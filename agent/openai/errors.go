package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// Error is an error that the server has sent. The errors of a reply wrap it and say how to correct
// the fault.
type Error = modelhttp.ProviderError

// explain returns an error that says what to do about err and wraps it. characters is the length
// of the reply's text so far. Secrets of the base URL and the key are hidden.
func (m *model) explain(ctx context.Context, characters int, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *Error
	if errors.As(err, &refused) {
		err = m.explainRefusal(refused)
	} else {
		err = m.client.ExplainConnection(err, characters)
	}
	return secretmask.ModelError(err, m.opts.BaseURL, m.opts.Key)
}

// place is the base URL as it may be shown and stored.
func (m *model) place() string { return secretmask.URL(m.opts.BaseURL) }

// maskSecrets hides the secrets of the base URL and the key.
func (m *model) maskSecrets(text string) string {
	return secretmask.ModelText(text, m.opts.BaseURL, m.opts.Key)
}

// baseURLAdvice tells the user what to check if something else than chat completions is at the base
// URL.
func (o *Options) baseURLAdvice() string {
	path, _, _ := strings.Cut(o.BaseURL, "?")
	if strings.HasSuffix(strings.TrimRight(path, "/"), "/v1") {
		return "check the base URL"
	}
	return "check the base URL, which often ends in /v1"
}

// tooLongPhrases are parts of the messages by which servers say that a conversation is too long.
var tooLongPhrases = []string{"context length", "context_length", "maximum context", "context window", "context size", "too many tokens", "prompt is too long"}

// unpaidCodes are the codes and types by which servers say that the account has no money left, with
// any status. The word "quota" alone does not count: servers also use it for requests a minute.
var unpaidCodes = []string{"insufficient_quota", "exceeded_current_quota_error", "insufficient_balance", "billing_not_active", "billing_hard_limit_reached"}

// isUnpaid reports that the account has no money left, so that it does not help to try again.
func isUnpaid(e *Error) bool {
	return e.Status == http.StatusPaymentRequired || slices.Contains(unpaidCodes, e.Code) || slices.Contains(unpaidCodes, e.Type)
}

// isRateLimited reports that the requests or tokens of a period are used up. A message about
// tokens is then not about the model's window.
func isRateLimited(e *Error) bool {
	return e.Status == http.StatusTooManyRequests || e.Status == 0 && (e.Code == "429" || strings.Contains(e.Code+e.Type, "rate_limit"))
}

// explainRefusal says what to do about an error of the server. A conversation that does not fit
// into the window is [agent.ErrContextLength].
func (m *model) explainRefusal(e *Error) error {
	suffix, status := e.Suffix(), e.Status
	message := strings.ToLower(e.Message)
	switch {
	case isUnpaid(e):
		return fmt.Errorf("the quota or the balance of the account at %s is used up: top it up, or use another key%s: %w", m.place(), suffix, e)
	case isRateLimited(e) && strings.Contains(message, "request too large"):
		return fmt.Errorf("the request is larger than all that %s takes in a minute: shorten the conversation, or have the limit raised%s: %w", m.place(), suffix, e)
	case isRateLimited(e):
		return fmt.Errorf("%s gets too many requests: wait a while and try again%s: %w", m.place(), suffix, e)
	case e.Code == "context_length_exceeded" || status == http.StatusRequestEntityTooLarge || containsAny(message, tooLongPhrases):
		return fmt.Errorf("%w: begin a new one, or use a model with a larger window%s: %w", agent.ErrContextLength, suffix, e)
	case status == http.StatusUnauthorized && m.opts.Key == "":
		return fmt.Errorf("%s wants an API key, and none is set%s: %w", m.place(), suffix, e)
	case status == http.StatusUnauthorized || e.Code == "invalid_api_key":
		return fmt.Errorf("%s does not accept the API key: check that it is whole, has not been revoked, and belongs to this server%s: %w", m.place(), suffix, e)
	case status == http.StatusForbidden:
		return fmt.Errorf("%s does not allow this key to use the model %s%s: %w", m.place(), m.opts.Model, suffix, e)
	case status == http.StatusNotFound && (e.Code == "model_not_found" || strings.Contains(message, "model")):
		return fmt.Errorf("%s has no model %s: check the name%s: %w", m.place(), m.opts.Model, suffix, e)
	case status == http.StatusNotFound:
		return fmt.Errorf("there are no chat completions at %s: %s%s: %w", m.place(), m.opts.baseURLAdvice(), suffix, e)
	case strings.Contains(message, "not support tools") || strings.Contains(message, "tool choice requires"):
		return fmt.Errorf("the model %s cannot call tools here: use another, or have the tools in the prompt%s: %w", m.opts.Model, suffix, e)
	case status >= http.StatusInternalServerError || status == 0:
		return fmt.Errorf("%s has failed; try again later%s: %w", m.place(), suffix, e)
	}
	return fmt.Errorf("%s does not accept the request%s: %w", m.place(), suffix, e)
}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}
