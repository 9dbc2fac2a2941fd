package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// ErrRefused is wrapped by the error of a reply that the provider's safeguards have ended.
var ErrRefused = errors.New("the model refused to answer")

// Error is an error that the server has sent. The errors of a reply wrap it and say how to correct
// the fault.
type Error = modelhttp.ProviderError

// place is the base URL as it may be shown and stored.
func (m *model) place() string {
	return cmp.Or(secretmask.URL(m.opts.BaseURL), DefaultBaseURL)
}

// maskSecrets hides the secrets of the base URL and the key.
func (m *model) maskSecrets(text string) string {
	return secretmask.ModelText(text, m.opts.BaseURL, m.opts.Key)
}

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

// explainRefusal says what to do about an error of the server. A conversation that does not fit
// into the window is [agent.ErrContextLength].
func (m *model) explainRefusal(e *Error) error {
	kind, status, suffix := e.Type, e.Status, e.Suffix()
	mentions := func(phrase string) bool { return strings.Contains(strings.ToLower(e.Message), phrase) }
	switch {
	case (kind == "authentication_error" || status == http.StatusUnauthorized) && m.opts.Key == "":
		return fmt.Errorf("%s wants an API key, and none is set%s: %w", m.place(), suffix, e)
	case kind == "authentication_error" || status == http.StatusUnauthorized:
		return fmt.Errorf("%s does not accept the API key: check that it is whole, has not been revoked, and belongs to this server%s: %w", m.place(), suffix, e)
	case kind == "billing_error" || status == http.StatusPaymentRequired || mentions("credit balance"):
		return fmt.Errorf("the balance of the account at %s is used up: top it up, or use another key%s: %w", m.place(), suffix, e)
	case kind == "permission_error" || status == http.StatusForbidden:
		return fmt.Errorf("%s does not allow this key to use the model %s%s: %w", m.place(), m.opts.Model, suffix, e)
	case (kind == "not_found_error" || status == http.StatusNotFound) && mentions("model"):
		return fmt.Errorf("%s has no model %s: check the name%s: %w", m.place(), m.opts.Model, suffix, e)
	case kind == "not_found_error" || status == http.StatusNotFound:
		return fmt.Errorf("there is no Messages API at %s: %s%s: %w", m.place(), advice, suffix, e)
	case kind == "rate_limit_error" || status == http.StatusTooManyRequests: // a message about tokens is not about the window
		return fmt.Errorf("%s gets too many requests: wait %s and try again, or have the limit raised%s: %w", m.place(), waitingTime(e), suffix, e)
	case kind == "request_too_large" || status == http.StatusRequestEntityTooLarge || mentions("prompt is too long") || mentions("exceed context limit"):
		return fmt.Errorf("%w: begin a new one, or use a model with a larger window%s: %w", agent.ErrContextLength, suffix, e)
	case mentions("max_tokens"):
		return fmt.Errorf("lower MaxTokens, which is %d, or Thinking, which is %d%s: %w", m.opts.MaxTokens, m.opts.Thinking, suffix, e)
	case kind == "overloaded_error" || status == 529:
		return fmt.Errorf("%s is overloaded; try again later%s: %w", m.place(), suffix, e)
	case kind == "api_error" || kind == "timeout_error" || status >= 500:
		return fmt.Errorf("%s has failed; try again later%s: %w", m.place(), suffix, e)
	}
	return fmt.Errorf("%s does not accept the request%s: %w", m.place(), suffix, e)
}

// advice tells the user what to check if something else than the Messages API is at the base URL.
const advice = "check the base URL"

// waitingTime is the time that the server asks to wait, in words.
func waitingTime(e *Error) string {
	if e.RetryAfter <= 0 {
		return "a while"
	}
	return fmt.Sprintf("%d s", int(e.RetryAfter.Round(time.Second).Seconds()))
}

// explainStop returns the error of a reply that ended for the given reason; nil if the reply is
// good.
func explainStop(reason, explanation string) error {
	switch reason {
	case "model_context_window_exceeded":
		return fmt.Errorf("%w, and its reply was cut off: shorten it, or begin a new one", agent.ErrContextLength)
	case "refusal":
		return fmt.Errorf("%w: %s: say it differently, or begin a new conversation", ErrRefused, cmp.Or(explanation, "no reason was given"))
	}
	return nil
}
