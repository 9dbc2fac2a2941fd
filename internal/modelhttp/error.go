package modelhttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// ProviderError is an API error in the shape that most providers use. Fields that the server
// leaves out are zero. Secrets of the request are masked in all of them.
type ProviderError struct {
	// Status is the HTTP status; 0 if the error came within a stream that had begun well.
	Status int
	// Type and Code are the provider's names for the error, such as "rate_limit_error".
	Type, Code string
	// Message is the provider's text for people.
	Message string
	// RequestID names the request to the provider's support.
	RequestID string
	// RetryAfter is how long the server asks to wait.
	RetryAfter time.Duration
}

// Error returns the status, the type and the request's id. The message is left to
// [ProviderError.Suffix].
func (e *ProviderError) Error() string {
	text := cmp.Or(e.Type, http.StatusText(e.Status), "error")
	if e.Status > 0 {
		text = fmt.Sprintf("%d %s", e.Status, text)
	}
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text
}

// Suffix formats the provider's message to follow our own explanation. It is "" without a message.
func (e *ProviderError) Suffix() string {
	if e.Message == "" {
		return ""
	}
	return " (it says: " + e.Message + ")"
}

// ReadError reads an error in any shape that servers use: an object with an error, a list of one
// such object, a string instead of the error, the members at the top, a detail, or plain text, of
// which it keeps the first line. A code may be a number. The caller sets the fields
// that the body does not hold.
func ReadError(body []byte) *ProviderError {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var members map[string]any
	if json.Unmarshal(body, &members) != nil {
		return &ProviderError{Message: firstLine(string(body))}
	}
	switch inner := members["error"].(type) {
	case map[string]any:
		members = inner
	case string:
		return &ProviderError{Message: inner}
	}
	text := func(key string) string {
		if v, ok := members[key]; ok && v != nil {
			return fmt.Sprint(v)
		}
		return ""
	}
	return &ProviderError{Type: text("type"), Code: text("code"), Message: cmp.Or(text("message"), text("detail"))}
}

func firstLine(text string) string {
	const longest = 300 // characters
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return string([]rune(line)[:min(utf8.RuneCountInString(line), longest)])
}

func requestID(h http.Header) string { return cmp.Or(h.Get("Request-Id"), h.Get("X-Request-Id")) }

// AnswerError is the error of an answer of an unexpected kind. Its usual cause is a wrong URL.
type AnswerError struct{ text string }

func (e *AnswerError) Error() string { return e.text }

// ExplainConnection says what to do about a connection that has failed after the given number of
// characters of a reply. An [*AnswerError] says so itself.
func (c *Client) ExplainConnection(err error, characters int) error {
	var wrong *AnswerError
	var name *net.DNSError
	switch {
	case errors.As(err, &wrong):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s: is the server running, and is its address right? %w", c.Place, err)
	case errors.As(err, &name):
		return fmt.Errorf("the host of %s is not known: check the base URL and the connection to the network: %w", c.Place, err)
	case characters > 0:
		return c.BrokenOff(err, characters)
	}
	return fmt.Errorf("the connection to %s has failed; try again: %w", c.Place, err)
}

// BrokenOff is the error of a reply that ends after the given number of characters, before its end.
func (c *Client) BrokenOff(err error, characters int) error {
	after := ""
	if characters > 0 {
		after = fmt.Sprintf(" after %d characters", characters)
	}
	return fmt.Errorf("the reply of %s broke off%s; try again: %w", c.Place, after, err)
}
