package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"time"
)

// ErrNotRunning is wrapped by the error of a client that finds no running dowel.
var ErrNotRunning = errors.New("no dowel is running: start one with dowel up")

// ErrRunning is wrapped by the error of [Listen] where there is a running dowel already.
var ErrRunning = errors.New("a dowel is running already")

// Client talks to a running dowel.
type Client struct {
	http *http.Client
	path string
}

// NewClient returns a client of the dowel that listens at a path. It connects with each call.
func NewClient(path string) *Client {
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) },
		DisableKeepAlives: true,
	}
	return &Client{&http.Client{Transport: transport}, path}
}

// HTTP returns what makes requests to the running dowel, such as those of MCP to [Client.Gateway].
func (c *Client) HTTP() *http.Client { return c.http }

// Gateway is the URL of the running dowel's MCP endpoint, for [Client.HTTP].
func (c *Client) Gateway() string { return base + "/mcp" }

// base is what requests are addressed to; there is only one place where they can go.
const base = "http://localhost"

// Status asks how the running dowel is.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/status", &s)
	return s, err
}

// Do does one thing with a server: enable, disable, restart, trust.
func (c *Client) Do(ctx context.Context, name, verb string) error {
	return c.do(ctx, http.MethodPost, "/v1/servers/"+url.PathEscape(name)+"/"+verb, nil)
}

// Reload lets the running dowel read its configuration again.
func (c *Client) Reload(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/v1/reload", nil)
}

// Yield asks the running dowel to let another take its place: [Listen] succeeds soon after.
func (c *Client) Yield(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/v1/yield", nil)
}

// Logs iterates over what has happened to a server, the lines of its stderr among it; with follow over what comes, too, until
// ctx ends.
func (c *Client) Logs(ctx context.Context, name string, follow bool) iter.Seq2[Event, error] {
	path := "/v1/servers/" + url.PathEscape(name) + "/logs"
	if follow {
		path += "?follow=1"
	}
	return c.stream(ctx, path)
}

// Events iterates over what happens until ctx ends.
func (c *Client) Events(ctx context.Context) iter.Seq2[Event, error] {
	return c.stream(ctx, "/v1/events")
}

func (c *Client) stream(ctx context.Context, path string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		resp, err := c.send(ctx, http.MethodGet, path)
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

// answering bounds how long a running dowel may take for an answer.
const answering = 30 * time.Second

func (c *Client) do(ctx context.Context, method, path string, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answering, fmt.Errorf("the running dowel did not answer within %v", answering))
	defer cancel()
	resp, err := c.send(ctx, method, path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

func (c *Client) send(ctx context.Context, method, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, base+path, nil)
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
		return nil, fmt.Errorf("the running dowel answered with %s: is it of another version?", resp.Status)
	}
	return nil, errors.New(failed.Error)
}
