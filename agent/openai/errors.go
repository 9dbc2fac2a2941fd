package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/urlmask"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// explain says what to do about an error of the SDK's, which it wraps, and hides the secrets of the base URL.
func (m *Model) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return urlmask.Error(m.meaning(err), m.opts.BaseURL)
}

// place is the base URL as it may be shown and kept.
func (m *Model) place() string { return urlmask.URL(m.opts.BaseURL) }

func (m *Model) meaning(err error) error {
	var answer *sdk.Error
	var streamed *ssestream.StreamError
	var dns *net.DNSError
	switch {
	case errors.As(err, &answer):
		return m.refusal(answer.StatusCode, said{answer.Message, answer.Type, answer.Param, answer.Code}, err)
	case errors.As(err, &streamed):
		return m.refusal(0, readError(streamed.Event.Data), err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s: is the server running, and is its address right? %w", m.place(), err)
	case errors.As(err, &dns):
		return fmt.Errorf("the host of %s is not known: check the base URL and the connection to the network: %w", m.place(), err)
	}
	return fmt.Errorf("the connection to %s has failed; try again: %w", m.place(), err)
}

// said is an error in OpenAI's shape.
type said struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"param"`
	Code    string `json:"code"`
}

// readError reads an error in whatever shape a server gives it: OpenAI's, with a code that may be a number, a list of one such, a
// string instead of the object, the object's members at the top, a detail, or no JSON at all.
func readError(body []byte) (e said) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var top map[string]any
	if json.Unmarshal(body, &top) != nil {
		return said{Message: firstLine(string(body))}
	}
	from := top
	switch inner := top["error"].(type) {
	case map[string]any:
		from = inner
	case string:
		return said{Message: inner}
	}
	text := func(key string) string {
		if v, ok := from[key]; ok && v != nil {
			return fmt.Sprint(v)
		}
		return ""
	}
	e = said{text("message"), text("type"), text("param"), text("code")}
	if e.Message == "" {
		e.Message = text("detail")
	}
	return e
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return string([]rune(line)[:min(utf8.RuneCountInString(line), 300)])
}

// maxError bounds what is read of an error's body, in bytes.
const maxError = 64 << 10

// shapeErrors gives the errors of all servers OpenAI's shape: the SDK fails at others, and loses their status.
func shapeErrors(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxError))
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	if body, err = json.Marshal(map[string]said{"error": readError(body)}); err != nil {
		return nil, err
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

// longer are parts of the messages by which servers say that a conversation is too long.
var longer = []string{"context length", "context_length", "maximum context", "context window", "context size", "too many tokens", "prompt is too long"}

// spent are the codes and types by which servers say that there is no money left, with whatever status. The word quota alone means
// nothing: limits of requests in a minute are called so, too.
var spent = []string{"insufficient_quota", "exceeded_current_quota_error", "insufficient_balance", "billing_not_active", "billing_hard_limit_reached"}

// busy reports whether a limit of requests or tokens in a time has been reached. What servers say of tokens then is not about the
// model's window.
func busy(status int, e said) bool {
	return status == http.StatusTooManyRequests || status == 0 && (e.Code == "429" || strings.Contains(e.Code+e.Type, "rate_limit"))
}

// refusal says what a server's answer means. status is 0 where the answer had begun well.
func (m *Model) refusal(status int, e said, err error) error {
	says, code := "", e.Code
	if e.Message != "" {
		says = fmt.Sprintf(" (it says: %s)", e.Message)
	}
	lower := strings.ToLower(e.Message)
	switch {
	case status == http.StatusPaymentRequired || slices.Contains(spent, code) || slices.Contains(spent, e.Type):
		return fmt.Errorf("the quota or the balance of the account at %s is used up: top it up, or use another key%s: %w", m.place(), says, err)
	case busy(status, e) && strings.Contains(lower, "request too large"):
		return fmt.Errorf("the request is larger than all that %s takes in a minute: shorten the conversation, or have the limit raised%s: %w", m.place(), says, err)
	case busy(status, e):
		return fmt.Errorf("%s gets too many requests: wait a while and try again%s: %w", m.place(), says, err)
	case code == "context_length_exceeded" || status == http.StatusRequestEntityTooLarge || containsAny(lower, longer):
		return fmt.Errorf("%w: begin a new one, or use a model with a larger window%s: %w", agent.ErrContextLength, says, err)
	case status == http.StatusUnauthorized && m.opts.Key == "":
		return fmt.Errorf("%s wants an API key, and none is set%s: %w", m.place(), says, err)
	case status == http.StatusUnauthorized || code == "invalid_api_key":
		return fmt.Errorf("%s does not accept the API key: check that it is whole, has not been revoked, and belongs to this server%s: %w", m.place(), says, err)
	case status == http.StatusForbidden:
		return fmt.Errorf("%s does not allow this key to use the model %s%s: %w", m.place(), m.opts.Model, says, err)
	case status == http.StatusNotFound && (code == "model_not_found" || strings.Contains(lower, "model")):
		return fmt.Errorf("%s has no model %s: check the name%s: %w", m.place(), m.opts.Model, says, err)
	case status == http.StatusNotFound:
		return fmt.Errorf("there are no chat completions at %s: check the base URL, which often ends in /v1%s: %w", m.place(), says, err)
	case strings.Contains(lower, "not support tools") || strings.Contains(lower, "tool choice requires"):
		return fmt.Errorf("the model %s cannot call tools here: use another, or have the tools in the prompt%s: %w", m.opts.Model, says, err)
	case status >= http.StatusInternalServerError || status == 0:
		return fmt.Errorf("%s has failed; try again later%s: %w", m.place(), says, err)
	}
	return fmt.Errorf("%s does not accept the request%s: %w", m.place(), says, err)
}

func containsAny(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
