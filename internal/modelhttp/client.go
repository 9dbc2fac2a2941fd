package modelhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// Client posts requests to one endpoint of one model server. Its fields must not change after the
// first call of Post. It is safe for concurrent use.
type Client struct {
	// URL is the endpoint, with the query that every request carries.
	URL string
	// Header is sent with every request, beside the content type.
	Header http.Header
	// HTTP sends the requests. Its Timeout bounds an answer as a whole.
	HTTP *http.Client
	// Retries is how often a failed request is sent again at most.
	Retries int

	// Place names the server in messages, without secrets.
	Place string
	// Kind names the wanted answers in messages, such as "chat completions".
	Kind string
	// Advice ends the message about an answer of another kind: what the user should check.
	Advice string
	// Mask hides secrets in text that the server has sent. It is applied before anything is kept.
	Mask func(string) string

	// Final reports that a refused request would be refused again, whatever its status says.
	// nil: the status decides.
	Final func(*ProviderError) bool
	// EventsOf turns a complete JSON answer into the event stream that was asked for. It returns
	// nil if the answer is of another kind.
	EventsOf func(body []byte) []byte
}

const (
	maxErrorBody = 64 << 10        // bytes of an error's body that are read
	maxWait      = 2 * time.Minute // a server that asks for a longer wait is not tried again
	maxBackoff   = 8 * time.Second // between two attempts, if the server does not say how long to wait

	// maxAbsentRetries bounds the retries while nothing listens at the address: the server may
	// just be starting, but more often the address is wrong.
	maxAbsentRetries = 2
)

// ErrStopped is returned by [Client.Post] if notify returned false.
var ErrStopped = errors.New("the caller has stopped the request")

// Post sends body, a JSON document, and returns the answer as a stream, which the caller must
// close. The stream reads until ctx ends.
//
// Post sends the request again, up to Retries times, after a connection error and after the
// statuses 408, 409, 429 and 5xx. The header X-Should-Retry of the answer overrides the status.
// Post waits as long as Retry-After-Ms or Retry-After demand, or else 0.5, 1, 2, 4 and from then
// on 8 seconds, less up to a quarter by chance. Before the first wait it calls notify with a
// message for the user; if notify returns false, the error is [ErrStopped].
//
// A refusal is a [*ProviderError], an answer of another kind an [*AnswerError].
func (c *Client) Post(ctx context.Context, body []byte, notify func(message string) bool) (*Stream, error) {
	notified := false
	for attempt := 0; ; attempt++ {
		res, err := c.sendOnce(ctx, body)
		if err == nil && res.StatusCode < http.StatusBadRequest {
			return c.openStream(res)
		}
		f := c.failureOf(res, err)
		if ctx.Err() != nil || attempt >= c.Retries || !f.isTemporary(attempt) {
			return nil, f.err
		}
		if !notified && !notify(f.message) {
			return nil, ErrStopped
		}
		notified = true
		if err := sleepFor(ctx, f.delayAfter(attempt)); err != nil {
			return nil, err
		}
	}
}

func (c *Client) sendOnce(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, &AnswerError{fmt.Sprintf("%s is not a valid URL: check the base URL", c.Place)}
	}
	for name, values := range c.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "dowel")
	return c.HTTP.Do(req)
}

// failure is a failed attempt.
type failure struct {
	err     error
	message string // tells the user that the request is sent again
	final   bool
	absent  bool // nothing listens at the server's address
	after   time.Duration
	asked   bool // the server has asked to wait for the time in after
}

// failureOf describes an attempt without an answer (err is not nil) or with an error status.
// It reads and closes the answer's body.
func (c *Client) failureOf(res *http.Response, err error) *failure {
	if err != nil {
		var name *net.DNSError
		var invalid *AnswerError
		return &failure{
			err:     err,
			message: "the connection to " + c.Place + " has failed; trying again",
			final:   errors.As(err, &invalid),
			absent:  errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &name),
		}
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // a part is better than nothing
	res.Body.Close()
	refused := ReadError([]byte(c.Mask(string(body))))
	refused.Status, refused.RequestID = res.StatusCode, requestID(res.Header)
	f := &failure{err: refused}
	f.after, f.asked = retryAfter(res.Header)
	refused.RetryAfter = f.after
	f.message = c.busyMessage(refused)
	f.final = f.after > maxWait || !isRetriable(res) || c.Final != nil && c.Final(refused)
	return f
}

// isTemporary reports whether the request may succeed after the given attempt, counted from 0.
func (f *failure) isTemporary(attempt int) bool {
	return !f.final && (!f.absent || attempt < maxAbsentRetries)
}

// delayAfter returns how long to wait after the given attempt.
func (f *failure) delayAfter(attempt int) time.Duration {
	if f.asked {
		return max(0, f.after)
	}
	delay := min(maxBackoff, 500*time.Millisecond<<min(attempt, 10))
	return delay - rand.N(delay/4) // spreads the clients of a server that has failed
}

func (c *Client) busyMessage(e *ProviderError) string {
	state := "has failed"
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
		state = "is busy"
	}
	when := ""
	if e.RetryAfter >= time.Second {
		when = fmt.Sprintf(" in %d s", int(e.RetryAfter.Round(time.Second).Seconds()))
	}
	return fmt.Sprintf("%s %s (%d); trying again%s", c.Place, state, e.Status, when)
}

// isRetriable reports whether the server may accept the same request later.
func isRetriable(res *http.Response) bool {
	switch res.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return res.StatusCode >= http.StatusInternalServerError
}

// retryAfter returns how long the server asks to wait. asked is false if it does not say.
func retryAfter(h http.Header) (d time.Duration, asked bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return time.Duration(min(ms, 1e12)) * time.Millisecond, true
	}
	after := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil {
		return time.Duration(min(s, 1e9) * float64(time.Second)), true
	}
	if at, err := http.ParseTime(after); err == nil {
		return time.Until(at), true
	}
	return 0, false
}

func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
