package weather

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// maxBody bounds an answer of the API in bytes. The largest known answers, all alerts of a
	// state with storms, are smaller than 2 MiB.
	maxBody = 8 << 20
	// maxRedirects is the maximal number of redirects of one request.
	maxRedirects = 5
	// geoJSON is the requested representation, the API's default.
	geoJSON = "application/geo+json"
)

// api is a client of the weather service.
type api struct {
	base      *url.URL
	userAgent string
	client    *http.Client
}

func newAPI(o Options) (*api, error) {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.UserAgent == "" {
		o.UserAgent = DefaultUserAgent
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	base, err := url.Parse(strings.TrimSuffix(o.BaseURL, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil {
		return nil, fmt.Errorf("weather: %q is not the URL of an API, such as %s", o.BaseURL, DefaultBaseURL)
	}
	a := &api{base: base, userAgent: o.UserAgent}
	a.client = &http.Client{Transport: o.Transport, Timeout: o.Timeout, CheckRedirect: a.checkRedirect}
	return a, nil
}

func (a *api) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if !a.isOwnHost(req.URL) {
		return fmt.Errorf("a redirect away from the weather service, to %s", req.URL.Host)
	}
	return nil
}

// isOwnHost reports whether the URL has the scheme and host of the API.
func (a *api) isOwnHost(u *url.URL) bool { return u.Scheme == a.base.Scheme && u.Host == a.base.Host }

// resolveLink returns the URL of a link in an answer. It refuses links to other hosts, so that a
// forged answer cannot make this process send requests to another server.
func (a *api) resolveLink(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("the weather service's answer has no valid link (got %.200q)", raw)
	}
	if a.isOwnHost(u) {
		return u, nil
	}
	if u.Scheme+"://"+u.Host == DefaultBaseURL { // answers of a mirror have links to the original
		here := a.base.JoinPath(u.Path)
		here.RawQuery = u.RawQuery
		return here, nil
	}
	return nil, fmt.Errorf("the weather service's answer links to another host, %s, which is not allowed", u.Host)
}

// fetchJSON fetches u and decodes the answer. what names the request in errors.
func (a *api) fetchJSON(ctx context.Context, u *url.URL, what string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", geoJSON)
	req.Header.Set("User-Agent", a.userAgent)
	res, err := a.client.Do(req)
	if err != nil {
		return a.unreachableError(ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case err != nil:
		return a.unreachableError(ctx, err)
	case len(body) > maxBody:
		return fmt.Errorf("the weather service's answer about %s is larger than %d MiB", what, maxBody>>20)
	case res.StatusCode != http.StatusOK:
		return newStatusError(res, body, what)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the weather service's answer about %s cannot be read: %w; try again in a minute", what, err)
	}
	return nil
}

// unreachableError explains why there is no answer, and what to do.
func (a *api) unreachableError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		return fmt.Errorf("the weather service at %s did not answer within %v: try again in a minute", a.base.Host, a.client.Timeout.Round(time.Millisecond))
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // without the URL, which does not help the caller
	}
	return fmt.Errorf("the weather service at %s cannot be reached: %w; check the connection to the internet", a.base.Host, err)
}

// statusError is an answer with an error status.
type statusError struct {
	status int
	what   string
	detail string // the API's explanation, or ""
}

// newStatusError returns the error for an answer. It reads the API's explanation, a problem
// document (RFC 9457), from the body.
func newStatusError(res *http.Response, body []byte, what string) error {
	e := &statusError{status: res.StatusCode, what: what}
	var problem struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); strings.HasSuffix(kind, "json") && json.Unmarshal(body, &problem) == nil {
		e.detail = problem.Detail
		if e.detail == "" {
			e.detail = problem.Title
		}
		e.detail = strings.TrimSuffix(e.detail, ".")
	}
	return e
}

func (e *statusError) Error() string {
	detail := ""
	if e.detail != "" {
		detail = fmt.Sprintf(" It says: %.300s.", e.detail)
	}
	switch {
	case e.status == http.StatusNotFound:
		return fmt.Sprintf("the weather service does not know %s.%s", e.what, detail)
	case e.status == http.StatusForbidden, e.status == http.StatusTooManyRequests:
		return fmt.Sprintf("the weather service refused the request (HTTP %d), probably because there were too many: wait a minute.%s", e.status, detail)
	case e.status >= 500:
		return fmt.Sprintf("the weather service failed (HTTP %d): try again in a minute.%s", e.status, detail)
	}
	return fmt.Sprintf("the weather service refused the request for %s (HTTP %d).%s", e.what, e.status, detail)
}
