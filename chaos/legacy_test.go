//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/mcp"
)

// A legacyClient speaks the revision 2025-11-25 by itself, so that the tests see each event as it
// is on the wire. It sends each request over a connection of its own, which leads to any replica.
type legacyClient struct {
	*cluster
	name    string
	url     string
	token   string
	http    *http.Client
	session string
	calls   atomic.Int64
}

func newLegacyClient(c *cluster, name, url string, client *http.Client) *legacyClient {
	if client == nil {
		client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	return &legacyClient{cluster: c, name: name, url: url, token: ownToken, http: client}
}

// errMissing is the error for a session that no replica knows.
var errMissing = errors.New("the session is not known")

// An exchange is a request that may be continued, mostly a call of a tool, and what came back.
type exchange struct {
	tool   string
	job    job
	task   string          // whose result is asked for; "" if it is about none
	raw    json.RawMessage // the result
	result string          // its text
	last   string          // the id of the last event
	steps  []int
	done   bool
	failed error // an error of the protocol
}

func (c *legacyClient) request(ctx context.Context, method, body string, fields ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = headerOf(ctx, c.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
		r.Header.Set("MCP-Protocol-Version", "2025-11-25")
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return c.http.Do(r)
}

// refused returns the error of an answer that is not the wanted one, and closes it.
func refused(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %s", errMissing, text)
	}
	return fmt.Errorf("status %d: %s", resp.StatusCode, text)
}

// open opens a session.
func (c *legacyClient) open(ctx context.Context) error {
	resp, err := c.request(ctx, "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
		"capabilities":{"elicitation":{}},"clientInfo":{"name":"chaos","version":"1"}}}`)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return refused(resp)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !bytes.Contains(text, []byte(`"serverInfo"`)) {
		return fmt.Errorf("initialize: %s %w", text, err)
	}
	c.session = resp.Header.Get("Mcp-Session-Id")
	return c.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// post sends a message that gets no answer.
func (c *legacyClient) post(ctx context.Context, body string) error {
	resp, err := c.request(ctx, "POST", body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusAccepted {
		return refused(resp)
	}
	return resp.Body.Close()
}

// ping asks for a sign of life of the session.
func (c *legacyClient) ping(ctx context.Context) error {
	resp, err := c.request(ctx, "POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return refused(resp)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}

// end ends the session.
func (c *legacyClient) end(ctx context.Context) error {
	resp, err := c.request(ctx, "DELETE", "")
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusNoContent && resp.StatusCode != http.StatusOK {
		return refused(resp)
	}
	return resp.Body.Close()
}

// callTool calls a tool. If the connection is lost, it continues from the last event at any
// replica.
func (c *legacyClient) callTool(ctx context.Context, e *exchange) error {
	arguments, err := json.Marshal(e.job)
	if err != nil {
		return err
	}
	return c.send(ctx, e, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, e.tool, arguments))
}

// send is callTool for any method.
func (c *legacyClient) send(ctx context.Context, e *exchange, method, params string) error {
	number := c.calls.Add(1)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, number+100, method, params)
	resp, err := c.request(ctx, "POST", body)
	for {
		if err == nil && resp.StatusCode != http.StatusOK {
			err = refused(resp)
		}
		if err == nil {
			err = c.read(ctx, resp, e)
		}
		if e.done {
			return e.failed
		}
		if e.last == "" || isRefused(err) || ctx.Err() != nil {
			return err
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		resp, err = c.request(ctx, "GET", "", "Last-Event-ID", e.last)
	}
}

// isRefused reports whether an attempt to continue was answered and is hopeless. Status 503 means
// that the cluster cannot be reached at the moment.
func isRefused(err error) bool {
	return err != nil && (errors.Is(err, errMissing) || strings.HasPrefix(err.Error(), "status ") && !strings.HasPrefix(err.Error(), "status 503"))
}

// read reads the answer of a call: one document, or events until the end of the connection.
func (c *legacyClient) read(ctx context.Context, resp *http.Response, e *exchange) error {
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		return c.take(ctx, text, e)
	}
	id, lines := "", bufio.NewReader(resp.Body)
	var data []byte
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err // half an event does not count
		}
		switch name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); {
		case name == "id":
			id = strings.TrimSpace(value)
		case name == "data":
			data = append(data, strings.TrimSpace(value)...)
		case name == "" && value == "":
			if id != "" {
				e.last = id
			}
			if len(data) > 0 {
				if err := c.take(ctx, data, e); err != nil || e.done {
					return err
				}
			}
			data = nil
		}
	}
}

var stepText = regexp.MustCompile(`step (\d+) of ([\w-]+)`)

// take handles a message.
func (c *legacyClient) take(ctx context.Context, text []byte, e *exchange) error {
	var m struct {
		ID     json.RawMessage
		Method string
		Result json.RawMessage
		Error  *mcp.Error
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	err := json.Unmarshal(text, &m)
	if err == nil && m.Result != nil {
		err = json.Unmarshal(m.Result, &result)
	}
	if err != nil {
		return fmt.Errorf("%w in %s", err, text)
	}
	switch {
	case m.Error != nil:
		e.done, e.failed = true, m.Error
	case m.Result != nil:
		e.done, e.raw = true, m.Result
		if len(result.Content) > 0 {
			e.result = result.Content[0].Text
		}
		if result.IsError {
			e.failed = errors.New("the tool failed: " + e.result)
		}
	case m.Method == "notifications/message":
		if match := stepText.FindSubmatch(text); match != nil && string(match[2]) == e.job.Job {
			n, _ := strconv.Atoi(string(match[1]))
			e.steps = append(e.steps, n)
		}
	case m.Method == "elicitation/create":
		if e.task != "" {
			o := c.h.Begin(&history.Op{Client: c.name, Kind: history.Answer, Key: e.task, Job: e.job.Job})
			defer func() { c.h.End(o, history.Sent) }()
		}
		// A lost connection may have taken the acknowledgement: an answer that is sent again does
		// no harm. Nothing asks again, so the client tries until it is acknowledged.
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"text":%q}}}`, m.ID, history.AnswerOf(e.job.Job))
		for {
			if err := c.post(ctx, body); err == nil || isRefused(err) || wait(ctx, 50*time.Millisecond) != nil {
				break
			}
		}
	}
	return nil
}
