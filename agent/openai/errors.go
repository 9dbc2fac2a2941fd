package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
	"github.com/dowel-mcp/dowel/internal/urlmask"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// explain says what to do about an error of the SDK's, which it wraps, behind what has been said of the reply. It hides the secrets.
func (m *Model) explain(ctx context.Context, said string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return urlmask.Error(m.meaning(said, err), m.opts.BaseURL, m.opts.Key)
}

// place is the base URL as it may be shown and kept.
func (m *Model) place() string { return urlmask.URL(m.opts.BaseURL) }

// hide hides the secrets in what a server says.
func (m *Model) hide(text string) string { return urlmask.Text(text, m.opts.BaseURL, m.opts.Key) }

// advice is what to do where something else than chat completions is at the base URL.
func (m *Model) advice() string {
	path, _, _ := strings.Cut(m.opts.BaseURL, "?")
	if strings.HasSuffix(strings.TrimRight(path, "/"), "/v1") {
		return "check the base URL"
	}
	return "check the base URL, which often ends in /v1"
}

func (m *Model) meaning(text string, err error) error {
	var answer *sdk.Error
	var streamed *ssestream.StreamError
	var other *modelhttp.AnswerError
	var dns *net.DNSError
	switch {
	case errors.As(err, &answer):
		return m.refusal(answer.StatusCode, modelhttp.Said{Message: answer.Message, Type: answer.Type, Param: answer.Param, Code: answer.Code}, err)
	case errors.As(err, &streamed):
		return m.refusal(0, modelhttp.ReadError([]byte(m.hide(string(streamed.Event.Data)))), err)
	case errors.As(err, &other):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s: is the server running, and is its address right? %w", m.place(), err)
	case errors.As(err, &dns):
		return fmt.Errorf("the host of %s is not known: check the base URL and the connection to the network: %w", m.place(), err)
	case text != "":
		return m.brokenOff(text, err)
	}
	return fmt.Errorf("the connection to %s has failed; try again: %w", m.place(), err)
}

// brokenOff is the error of a reply without an end.
func (m *Model) brokenOff(text string, err error) error {
	after := ""
	if n := utf8.RuneCountInString(text); n > 0 {
		after = fmt.Sprintf(" after %d characters", n)
	}
	return fmt.Errorf("the reply of %s broke off%s; try again: %w", m.place(), after, err)
}

// shape gives the errors of all servers OpenAI's shape: the SDK fails at others, and loses their status. Where there is no money left,
// it is hopeless to try again.
func shape(status int, body []byte) (shaped []byte, hopeless bool) {
	e := modelhttp.ReadError(body)
	shaped, _ = json.Marshal(map[string]modelhttp.Said{"error": e}) // strings always can be
	return shaped, unpaid(status, e)
}

// longer are parts of the messages by which servers say that a conversation is too long.
var longer = []string{"context length", "context_length", "maximum context", "context window", "context size", "too many tokens", "prompt is too long"}

// spent are the codes and types by which servers say that there is no money left, with whatever status. The word quota alone means
// nothing: limits of requests in a minute are called so, too.
var spent = []string{"insufficient_quota", "exceeded_current_quota_error", "insufficient_balance", "billing_not_active", "billing_hard_limit_reached"}

func unpaid(status int, e modelhttp.Said) bool {
	return status == http.StatusPaymentRequired || slices.Contains(spent, e.Code) || slices.Contains(spent, e.Type)
}

// busy reports whether a limit of requests or tokens in a time has been reached. What servers say of tokens then is not about the
// model's window.
func busy(status int, e modelhttp.Said) bool {
	return status == http.StatusTooManyRequests || status == 0 && (e.Code == "429" || strings.Contains(e.Code+e.Type, "rate_limit"))
}

// refusal says what a server's answer means. status is 0 where the answer had begun well.
func (m *Model) refusal(status int, e modelhttp.Said, err error) error {
	says, code := e.Says(), e.Code
	lower := strings.ToLower(e.Message)
	switch {
	case unpaid(status, e):
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
		return fmt.Errorf("there are no chat completions at %s: %s%s: %w", m.place(), m.advice(), says, err)
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
