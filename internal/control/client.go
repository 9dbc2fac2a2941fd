package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
)

// ErrNotRunning is wrapped by errors of a client that finds no running dowel.
var ErrNotRunning = errors.New("no dowel is running: start one with dowel up")

// ErrRunning is wrapped by the error of [Listen] if another dowel is running.
var ErrRunning = errors.New("a dowel is running already")

// Client talks to a running dowel. It is safe for concurrent use.
type Client struct {
	http *http.Client
	path string
}

// NewClient returns a client of the dowel that listens at a path. The client connects with each
// call.
func NewClient(path string) *Client {
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, path) },
		DisableKeepAlives: true,
	}
	return &Client{&http.Client{Transport: transport}, path}
}

// HTTP returns a client for requests to the running dowel, such as MCP requests to
// [Client.Gateway].
func (c *Client) HTTP() *http.Client { return c.http }

// Gateway returns the URL of the running dowel's MCP endpoint, for [Client.HTTP].
func (c *Client) Gateway() string { return base + "/mcp" }

// base is the URL of all requests. Its host has no effect: all connections go to the socket.
const base = "http://localhost"

// Status returns the status of the running dowel.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/status", &s)
	return s, err
}

// ClusterSync returns how the NATS servers of the running dowel's cluster write to the disk.
func (c *Client) ClusterSync(ctx context.Context) (sync replica.Sync, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/cluster/sync", &sync)
	return sync, err
}

// pollInterval is the time between two requests of AwaitStatus.
const pollInterval = 50 * time.Millisecond

// AwaitStatus requests the status until done, which gets each status or error, returns true. It
// returns the last status and a nil error, or the cause of ctx if ctx ends first.
func (c *Client) AwaitStatus(ctx context.Context, done func(Status, error) bool) (Status, error) {
	retry := time.NewTicker(pollInterval)
	defer retry.Stop()
	for {
		if s, err := c.Status(ctx); done(s, err) {
			return s, nil
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return Status{}, context.Cause(ctx)
		}
	}
}

// Do changes a server: verb is enable, disable or restart.
func (c *Client) Do(ctx context.Context, name, verb string) error {
	return c.call(ctx, http.MethodPost, "/v1/servers/"+url.PathEscape(name)+"/"+verb, nil)
}

// Token returns the token of the running dowel's HTTP address. renew replaces the token first.
func (c *Client) Token(ctx context.Context, renew bool) (string, error) {
	var answer tokenAnswer
	method, path := http.MethodGet, "/v1/token"
	if renew {
		method, path = http.MethodPost, "/v1/token/renew"
	}
	err := c.call(ctx, method, path, &answer)
	return answer.Token, err
}

// OpenConsole returns a URL that opens the console of the running dowel and logs in, once.
func (c *Client) OpenConsole(ctx context.Context) (login ConsoleLogin, err error) {
	err = c.call(ctx, http.MethodPost, "/v1/console", &login)
	return login, err
}

// Reload makes the running dowel read its configuration again.
func (c *Client) Reload(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/reload", nil)
}

// logoutTimeout limits how long a logout may wait for the authorization server and the cluster.
const logoutTimeout = 3 * time.Minute

// Logout ends a login of the running dowel. In a cluster it ends for all replicas.
func (c *Client) Logout(ctx context.Context, l Login) error {
	return c.post(ctx, logoutTimeout, "/v1/logout", l)
}

// Authorize returns [ErrOwnServer] if a server of the running dowel started this process. The
// process must then not change the user's decisions. It returns nil if no dowel runs.
func (c *Client) Authorize(ctx context.Context) error {
	err := c.call(ctx, http.MethodPost, "/v1/authorize", nil)
	if err != nil && err.Error() == ErrOwnServer.Error() {
		return ErrOwnServer
	}
	return nil // no dowel runs, or an older version does not know this request
}

// Yield asks the running dowel to let this process take its place. [Listen] succeeds soon
// afterwards.
func (c *Client) Yield(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/yield", nil)
}

// RequestStop asks the running dowel to end. It returns before the dowel has ended.
func (c *Client) RequestStop(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/stop", nil)
}

// Logs iterates over the history of a server: states and lines of stderr. With follow it continues
// with new events until ctx ends.
func (c *Client) Logs(ctx context.Context, name string, follow bool) iter.Seq2[Event, error] {
	path := "/v1/servers/" + url.PathEscape(name) + "/logs"
	if follow {
		path += "?follow=1"
	}
	return c.streamEvents(ctx, path)
}

// Events iterates over events of all servers until ctx ends.
func (c *Client) Events(ctx context.Context) iter.Seq2[Event, error] {
	return c.streamEvents(ctx, "/v1/events")
}

// streamEvents iterates over the events in a response with one JSON object in each line of up to 1
// MiB.
func (c *Client) streamEvents(ctx context.Context, path string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		resp, err := c.sendRequest(ctx, http.MethodGet, path)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e Event
			err := json.Unmarshal(lines.Bytes(), &e)
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil && ctx.Err() == nil {
			yield(Event{}, err)
		}
	}
}

// callTimeout limits how long a running dowel may take to answer.
const callTimeout = 30 * time.Second

// call sends a request and decodes the answer into a value, which may be nil.
func (c *Client) call(ctx context.Context, method, path string, into any) error {
	ctx, cancel := withAnswerLimit(ctx, callTimeout)
	defer cancel()
	resp, err := c.sendRequest(ctx, method, path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// sendRequest returns the response of a request that succeeds, or the running dowel's error.
func (c *Client) sendRequest(ctx context.Context, method, path string) (*http.Response, error) {
	return c.sendBody(ctx, method, path, nil)
}

// post sends a value as JSON, and waits at most limit until the running dowel has done what it asks
// for.
func (c *Client) post(ctx context.Context, limit time.Duration, path string, value any) error {
	ctx, cancel := withAnswerLimit(ctx, limit)
	defer cancel()
	resp, err := c.postJSON(ctx, path, value)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// withAnswerLimit limits how long the running dowel may take to answer.
func withAnswerLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("the running dowel did not answer within %v", limit))
}

// postJSON sends a value as JSON. It returns the response of a request that succeeds, or the
// running dowel's error.
func (c *Client) postJSON(ctx context.Context, path string, value any) (*http.Response, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return c.sendBody(ctx, http.MethodPost, path, bytes.NewReader(body))
}

// sendBody is sendRequest with a body, which may be nil.
func (c *Client) sendBody(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	var unreachable *net.OpError
	switch {
	case errors.As(err, &unreachable) && unreachable.Op == "dial":
		return nil, fmt.Errorf("%w (%s)", ErrNotRunning, c.path)
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusOK:
		return resp, nil
	}
	defer resp.Body.Close()
	var failed failure
	if err := json.NewDecoder(resp.Body).Decode(&failed); err != nil || failed.Error == "" {
		return nil, fmt.Errorf("the running dowel answered with %s: is it of another version? To use this one, end it with dowel down, and start it again", resp.Status)
	}
	return nil, errors.New(failed.Error)
}
