// Package modelhttp stands between the SDKs of model providers and their servers: it sees to it that the answer to a request for a
// stream is one, decides what is asked again, and says both in words that help.
package modelhttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// Next sends a request, as the SDKs have it.
type Next = func(*http.Request) (*http.Response, error)

// Watch is over the requests of one reply. It is not safe for concurrent use: the SDKs call it where they are called themselves.
type Watch struct {
	// Place is the server, as it may be shown.
	Place string
	// Of is what a stream is wanted of, such as "chat completions", and Advice what to do where there is none.
	Of, Advice string
	// Retries is how often the SDK sends a request again at most.
	Retries int
	// Mask hides the secrets in what a server says.
	Mask func(string) string
	// Refused shapes the body of an error for the SDK, and reports whether it is hopeless to try again. nil: as it is.
	Refused func(status int, body []byte) (shaped []byte, hopeless bool)
	// Whole makes the events of a stream of a JSON object that is a whole answer; nil where it is none.
	Whole func(body []byte) (events []byte)
	// Tell tells the user something, and reports whether somebody still listens.
	Tell func(text string) bool

	answer *answer
	told   bool
	failed bool // the last request, without an answer
	left   bool // nobody listens
}

// Bounds of what is read and waited for.
const (
	maxError = 64 << 10
	maxWait  = 2 * time.Minute // as a server may ask for; the error tells of longer ones
	gone     = 2               // how often a server that is not there is tried again: it may just be starting
)

// Do is a middleware of the SDKs.
func (w *Watch) Do(req *http.Request, next Next) (*http.Response, error) {
	attempt, _ := strconv.Atoi(req.Header.Get("X-Stainless-Retry-Count")) // both SDKs count so; the first has 0
	if w.failed && attempt > 0 && !w.tell("the connection to "+w.Place+" has failed; trying again") {
		return ended(req, errLeft), nil
	}
	res, err := next(req)
	w.failed = err != nil
	switch {
	case err != nil && attempt >= gone && absent(err):
		return ended(req, err), nil
	case err != nil:
		return res, err
	case res.StatusCode >= http.StatusBadRequest:
		w.refused(res, attempt)
	default:
		w.begin(res)
	}
	return res, nil
}

var errLeft = errors.New("nobody listens any more")

// absent reports whether nothing is at the server's address.
func absent(err error) bool {
	var name *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &name)
}

// ended is an answer whose body is an error: the SDKs would try again after any other.
func ended(req *http.Request, err error) *http.Response {
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: io.NopCloser(failing{err})}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// refused shapes an error, and says whether the SDK is to try again.
func (w *Watch) refused(res *http.Response, attempt int) {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxError)) // the status counts, and what there is of the rest
	res.Body.Close()
	body, hopeless := []byte(w.Mask(string(body))), false
	if w.Refused != nil {
		body, hopeless = w.Refused(res.StatusCode, body)
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	again := !hopeless && retried(res)
	if again && attempt < w.Retries {
		again = w.tell(w.busy(res))
	}
	res.Header.Set("X-Should-Retry", strconv.FormatBool(again)) // which the SDKs go by
}

// retried reports whether an error may not come again.
func retried(res *http.Response) bool {
	if wait(res) > maxWait {
		return false
	}
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

func (w *Watch) busy(res *http.Response) string {
	what := "has failed"
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
		what = "is busy"
	}
	when := ""
	if d := wait(res); d >= time.Second {
		when = fmt.Sprintf(" in %d s", int(d.Round(time.Second).Seconds()))
	}
	return fmt.Sprintf("%s %s (%d); trying again%s", w.Place, what, res.StatusCode, when)
}

// wait is how long a server asks to wait; 0: it does not.
func wait(res *http.Response) time.Duration {
	if ms, err := strconv.ParseFloat(res.Header.Get("Retry-After-Ms"), 64); err == nil {
		return time.Duration(min(ms, 1e12)) * time.Millisecond
	}
	after := res.Header.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil {
		return time.Duration(min(s, 1e9) * float64(time.Second))
	}
	if at, err := http.ParseTime(after); err == nil {
		return time.Until(at)
	}
	return 0
}

// tell says something of the trouble, once. It reports whether to go on.
func (w *Watch) tell(text string) bool {
	if !w.told && !w.left {
		w.told, w.left = true, !w.Tell(text)
	}
	return !w.left
}

// Left reports whether nobody has listened when something was told.
func (w *Watch) Left() bool { return w.left }
