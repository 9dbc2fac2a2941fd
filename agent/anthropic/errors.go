package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/urlmask"
)

// ErrRefused is in the error of a reply that the provider's safeguards have ended.
var ErrRefused = errors.New("the model refused to answer")

const broken = "the connection broke in the middle of the reply: try again"

// failure says what to do about an error.
type failure struct {
	what string
	err  error
}

func (f *failure) Error() string { return f.what + " (" + detail(f.err) + ")" }
func (f *failure) Unwrap() error { return f.err }

// detail is an error in short: the API's words without the request around them.
func detail(err error) string {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return err.Error()
	}
	text := fmt.Sprintf("%d %s", api.StatusCode, api.Type())
	if why := refusal(api); why != "" {
		text += ": " + why
	}
	if api.RequestID != "" {
		text += ", request " + api.RequestID
	}
	return text
}

// refusal is what the API says of an error; empty where it is not the API's.
func refusal(err error) string {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return ""
	}
	var body struct{ Error struct{ Message string } }
	if json.Unmarshal([]byte(api.RawJSON()), &body) != nil {
		return strings.TrimSpace(api.RawJSON())
	}
	return body.Error.Message
}

// stopped is the error of a reply that has not come to its end.
func (r *reply) stopped(msg sdk.Message) error {
	switch msg.StopReason {
	case sdk.StopReasonModelContextWindowExceeded:
		return fmt.Errorf("%w, and its reply was cut off: shorten it, or begin a new one", agent.ErrContextLength)
	case sdk.StopReasonRefusal:
		why := msg.StopDetails.Explanation
		if why == "" {
			why = "no reason was given"
		}
		return fmt.Errorf("%w: %s: say it differently, or begin a new conversation", ErrRefused, why)
	}
	return nil
}

// explain says what to do about an error of the SDK, and hides the secrets of the base URL.
func (m *Model) explain(err error) error { return urlmask.Error(m.meaning(err), m.opts.BaseURL) }

func (m *Model) meaning(err error) error {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return m.unreached(err)
	}
	kind, status, why := string(api.Type()), api.StatusCode, refusal(api)
	has := func(part string) bool { return strings.Contains(strings.ToLower(why), part) }
	what := ""
	switch {
	case kind == "authentication_error" || status == http.StatusUnauthorized:
		what = "the key is not accepted: check the API key (ANTHROPIC_API_KEY) and the base URL"
		if m.opts.Key == "" {
			what = "the server wants a key, and there is none: set the API key (ANTHROPIC_API_KEY)"
		}
	case kind == "billing_error" || status == http.StatusPaymentRequired || has("credit balance"):
		what = "the account has no credit left: buy some in the provider's console, or use another key"
	case kind == "permission_error" || status == http.StatusForbidden:
		what = fmt.Sprintf("the key may not use %s: take another model, or a key of another workspace", m.opts.Model)
	case (kind == "not_found_error" || status == http.StatusNotFound) && has("model"):
		what = fmt.Sprintf("there is no model %s: check its name", m.opts.Model)
	case kind == "not_found_error" || status == http.StatusNotFound:
		what = fmt.Sprintf("the server has no Messages API there: check the base URL %s", urlmask.URL(m.opts.BaseURL))
	case kind == "rate_limit_error" || status == http.StatusTooManyRequests: // whatever it says of tokens is not about the window
		what = "the rate limit or the quota is reached: wait" + wait(api) + ", or have the limit raised"
	case kind == "request_too_large" || status == http.StatusRequestEntityTooLarge || has("prompt is too long") || has("exceed context limit"):
		return &failure{"the conversation is too long for the model: shorten it, or begin a new one", fmt.Errorf("%w: %w", agent.ErrContextLength, err)}
	case has("max_tokens"):
		what = fmt.Sprintf("lower MaxTokens, which is %d, or Thinking, which is %d", m.opts.MaxTokens, m.opts.Thinking)
	case kind == "overloaded_error" || status == 529:
		what = "the provider is overloaded: try again in a while"
	case kind == "api_error" || kind == "timeout_error" || status >= 500:
		what = "the provider has failed: try again"
	default:
		what = "the provider refused the request"
	}
	return &failure{what, err}
}

// wait is how long, where the server has said so.
func wait(api *sdk.Error) string {
	if api.Response == nil || api.Response.Header.Get("Retry-After") == "" {
		return ""
	}
	return " " + api.Response.Header.Get("Retry-After") + " s"
}

func (m *Model) unreached(err error) error {
	where := urlmask.URL(m.opts.BaseURL)
	if where == "" {
		where = "the provider"
	}
	var network net.Error
	var name *net.DNSError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &failure{broken, err}
	case errors.As(err, &name):
		return &failure{fmt.Sprintf("%s has no address: check the base URL and the network", where), err}
	case errors.As(err, &network):
		return &failure{fmt.Sprintf("%s cannot be reached: check that it runs, the base URL and the network", where), err}
	}
	return &failure{"the request has failed: try again, and check the base URL if it fails again", err}
}
