package anthropic

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
	"github.com/dowel-mcp/dowel/internal/urlmask"
)

// ErrRefused is in the error of a reply that the provider's safeguards have ended.
var ErrRefused = errors.New("the model refused to answer")

// failure says what to do about an error.
type failure struct {
	what string
	err  error
}

func (f *failure) Error() string { return f.what + f.said() + ": " + detail(f.err) }
func (f *failure) Unwrap() error { return f.err }

func (f *failure) said() string { return modelhttp.Said{Message: refusal(f.err)}.Says() }

// detail is an error in short: of one of the API's, what it says is said already.
func detail(err error) string {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return err.Error()
	}
	text := cmp.Or(string(api.Type()), http.StatusText(api.StatusCode))
	if api.StatusCode >= http.StatusBadRequest { // not one that came in a stream
		text = strings.TrimSpace(fmt.Sprintf("%d %s", api.StatusCode, text))
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
	return modelhttp.ReadError([]byte(api.RawJSON())).Message
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

// explain says what to do about an error of the SDK, and hides the secrets.
func (r *reply) explain(err error) error {
	return urlmask.Error(r.meaning(r.watch.Explain(err)), r.opts.BaseURL, r.opts.Key)
}

// hide hides the secrets in what a server says.
func (m *Model) hide(text string) string { return urlmask.Text(text, m.opts.BaseURL, m.opts.Key) }

// place is the server, as it may be shown and kept.
func (m *Model) place() string {
	return cmp.Or(urlmask.URL(m.opts.BaseURL), DefaultBaseURL)
}

func (r *reply) meaning(err error) error {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return r.unreached(err)
	}
	kind, status, why := string(api.Type()), api.StatusCode, refusal(api)
	has := func(part string) bool { return strings.Contains(strings.ToLower(why), part) }
	place, what := r.place(), ""
	switch {
	case (kind == "authentication_error" || status == http.StatusUnauthorized) && r.opts.Key == "":
		what = place + " wants an API key, and none is set"
	case kind == "authentication_error" || status == http.StatusUnauthorized:
		what = place + " does not accept the API key: check that it is whole, has not been revoked, and belongs to this server"
	case kind == "billing_error" || status == http.StatusPaymentRequired || has("credit balance"):
		what = fmt.Sprintf("the balance of the account at %s is used up: top it up, or use another key", place)
	case kind == "permission_error" || status == http.StatusForbidden:
		what = fmt.Sprintf("%s does not allow this key to use the model %s", place, r.opts.Model)
	case (kind == "not_found_error" || status == http.StatusNotFound) && has("model"):
		what = fmt.Sprintf("%s has no model %s: check the name", place, r.opts.Model)
	case kind == "not_found_error" || status == http.StatusNotFound:
		what = fmt.Sprintf("there is no Messages API at %s: %s", place, advice)
	case kind == "rate_limit_error" || status == http.StatusTooManyRequests: // whatever it says of tokens is not about the window
		what = fmt.Sprintf("%s gets too many requests: wait %s and try again, or have the limit raised", place, wait(api))
	case kind == "request_too_large" || status == http.StatusRequestEntityTooLarge || has("prompt is too long") || has("exceed context limit"):
		return &failure{agent.ErrContextLength.Error() + ": begin a new one, or use a model with a larger window", fmt.Errorf("%w: %w", agent.ErrContextLength, err)}
	case has("max_tokens"):
		what = fmt.Sprintf("lower MaxTokens, which is %d, or Thinking, which is %d", r.opts.MaxTokens, r.opts.Thinking)
	case kind == "overloaded_error" || status == 529:
		what = place + " is overloaded; try again later"
	case kind == "api_error" || kind == "timeout_error" || status >= 500:
		what = place + " has failed; try again later"
	default:
		what = place + " does not accept the request"
	}
	return &failure{what, err}
}

// advice is what to do where something else is at the base URL.
const advice = "check the base URL"

// wait is how long, where the server has said so.
func wait(api *sdk.Error) string {
	if api.Response == nil || api.Response.Header.Get("Retry-After") == "" {
		return "a while"
	}
	return api.Response.Header.Get("Retry-After") + " s"
}

func (r *reply) unreached(err error) error {
	place := r.place()
	var other *modelhttp.AnswerError
	var network net.Error
	var name *net.DNSError
	switch {
	case errors.As(err, &other):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s: is the server running, and is its address right? %w", place, err)
	case errors.As(err, &name):
		return &failure{fmt.Sprintf("the host of %s is not known: check the base URL and the connection to the network", place), err}
	case r.said > 0:
		return &failure{fmt.Sprintf("the reply of %s broke off after %d characters; try again", place, r.said), err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &failure{fmt.Sprintf("the reply of %s broke off; try again", place), err}
	case errors.As(err, &network):
		return &failure{fmt.Sprintf("the connection to %s has failed; try again", place), err}
	}
	return &failure{fmt.Sprintf("the request to %s has failed: check the base URL, and try again", place), err}
}
