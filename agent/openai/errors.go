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
	"strings"
	"syscall"
	"unicode/utf8"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// ErrTooLong is in the error of a conversation that is longer than the model's window.
var ErrTooLong = errors.New("the conversation is longer than the model can read")

// explain says what to do about an error of the SDK's, which it wraps.
func (m *Model) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var answer *sdk.Error
	var streamed *ssestream.StreamError
	var dns *net.DNSError
	switch {
	case errors.As(err, &answer):
		return m.refusal(answer.StatusCode, answer.Code, answer.Message, err)
	case errors.As(err, &streamed):
		said := readError(streamed.Event.Data)
		return m.refusal(0, said.Code, said.Message, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s: is the server running, and is its address right? %w", m.opts.BaseURL, err)
	case errors.As(err, &dns):
		return fmt.Errorf("the host of %s is not known: check the base URL and the connection to the network: %w", m.opts.BaseURL, err)
	}
	return fmt.Errorf("the connection to %s has failed; try again: %w", m.opts.BaseURL, err)
}

// said is an error in OpenAI's shape.
type said struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"param"`
	Code    string `json:"code"`
}

// readError reads an error in whatever shape a server gives it: OpenAI's, with a code that may be a number, a string instead of the
// object, the object's members at the top, a detail, or no JSON at all.
func readError(body []byte) (e said) {
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

// refusal says what a server's answer means. status is 0 where the answer had begun well.
func (m *Model) refusal(status int, code, message string, err error) error {
	says := ""
	if message != "" {
		says = fmt.Sprintf(" (it says: %s)", message)
	}
	lower := strings.ToLower(message)
	switch {
	case code == "context_length_exceeded" || status == http.StatusRequestEntityTooLarge || containsAny(lower, longer):
		return fmt.Errorf("%w: begin a new one, or use a model with a larger window%s: %w", ErrTooLong, says, err)
	case status == http.StatusUnauthorized && m.opts.Key == "":
		return fmt.Errorf("%s wants an API key, and none is set%s: %w", m.opts.BaseURL, says, err)
	case status == http.StatusUnauthorized || code == "invalid_api_key":
		return fmt.Errorf("%s does not accept the API key: check that it is whole, has not been revoked, and belongs to this server%s: %w", m.opts.BaseURL, says, err)
	case status == http.StatusForbidden:
		return fmt.Errorf("%s does not allow this key to use the model %s%s: %w", m.opts.BaseURL, m.opts.Model, says, err)
	case status == http.StatusNotFound && (code == "model_not_found" || strings.Contains(lower, "model")):
		return fmt.Errorf("%s has no model %s: check the name%s: %w", m.opts.BaseURL, m.opts.Model, says, err)
	case status == http.StatusNotFound:
		return fmt.Errorf("there are no chat completions at %s: check the base URL, which often ends in /v1%s: %w", m.opts.BaseURL, says, err)
	case status == http.StatusPaymentRequired || code == "insufficient_quota" || strings.Contains(lower, "quota"):
		return fmt.Errorf("the quota or the balance of the account at %s is used up: top it up, or use another key%s: %w", m.opts.BaseURL, says, err)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("%s gets too many requests: wait a while and try again%s: %w", m.opts.BaseURL, says, err)
	case strings.Contains(lower, "not support tools") || strings.Contains(lower, "tool choice requires"):
		return fmt.Errorf("the model %s cannot call tools here: use another, or have the tools in the prompt%s: %w", m.opts.Model, says, err)
	case status >= http.StatusInternalServerError || status == 0:
		return fmt.Errorf("%s has failed; try again later%s: %w", m.opts.BaseURL, says, err)
	}
	return fmt.Errorf("%s does not accept the request%s: %w", m.opts.BaseURL, says, err)
}

func containsAny(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
