package work

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/bench/peer"
)

// What a client without an SDK sends: the same bytes to all.
const (
	meta        = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	arguments   = `"name":"echo","arguments":{"message":"hello"}`
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listen      = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + meta + `,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["` + peer.Watched + `"]}}}`
)

// callOf is a call of the echo tool.
func callOf(era peer.Era, id int) string {
	params := arguments
	if era == peer.Modern {
		params = meta + "," + arguments
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, id, params)
}

// echoed checks the answer to a call.
func echoed(answer []byte) error {
	if !bytes.Contains(answer, []byte(`"text":"hello"`)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return fmt.Errorf("the answer is %.300s", answer)
	}
	return nil
}

// request is the bytes of a request. Header fields end with CRLF.
func request(method, fields, body string) string {
	return fmt.Sprintf("%s /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s",
		method, fields, len(body), body)
}

func modernFields(method string) string {
	return "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: " + method + "\r\n"
}

func legacyFields(session string) string {
	return "Mcp-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: " + session + "\r\n"
}

// raw is a connection to an HTTP server.
type raw struct {
	net.Conn
	in *bufio.Reader
}

func dialRaw(endpoint string) (*raw, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &raw{conn, bufio.NewReaderSize(conn, 4096)}, nil
}

// limit is how long an answer may take.
const limit = 20 * time.Second

// do sends a request and reads the answer.
func (c *raw) do(request string) (header http.Header, body []byte, err error) {
	resp, err := c.open(request)
	if err != nil {
		return nil, nil, err
	}
	body, err = io.ReadAll(resp.Body)
	return resp.Header, body, errors.Join(err, resp.Body.Close())
}

// open sends a request and reads the head of the answer.
func (c *raw) open(request string) (*http.Response, error) {
	_ = c.SetDeadline(time.Now().Add(limit))
	if _, err := io.WriteString(c, request); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		body, err := io.ReadAll(io.LimitReader(resp.Body, 300))
		return nil, errors.Join(fmt.Errorf("the answer is %s: %s", resp.Status, body), err)
	}
	return resp, nil
}

// session opens a legacy session and returns its id.
func (c *raw) session() (string, error) {
	header, body, err := c.do(request(http.MethodPost, "", initialize))
	id := header.Get("Mcp-Session-Id")
	if err == nil && id == "" {
		err = fmt.Errorf("no session was opened: %.300s", body)
	}
	if err != nil {
		return "", err
	}
	_, _, err = c.do(request(http.MethodPost, legacyFields(id), initialized))
	return id, err
}

// events is an open event stream.
type events struct {
	conn *raw
	in   *bufio.Reader
}

func (c *raw) stream(request string) (*events, error) {
	resp, err := c.open(request)
	if err != nil {
		return nil, err
	}
	return &events{c, bufio.NewReaderSize(resp.Body, 256)}, nil
}

// next reads up to the next event with data in it.
func (e *events) next() error {
	_ = e.conn.SetDeadline(time.Now().Add(limit))
	for {
		line, prefix, err := e.in.ReadLine()
		data := bytes.HasPrefix(line, []byte("data:")) && len(line) > len("data: ")
		for prefix && err == nil {
			_, prefix, err = e.in.ReadLine()
		}
		if err != nil || data {
			return err
		}
	}
}

// opened opens a number of event streams, each on a connection of its own.
func opened(n int, open func(int) (*events, error)) (all []*events, err error) {
	for i := range n {
		e, err := open(i)
		if err != nil {
			closeAll(all)
			return nil, fmt.Errorf("stream %d: %w", i+1, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func closeAll(all []*events) {
	for _, e := range all {
		e.conn.Close()
	}
}

// listening opens a stream of changes, 2026-07-28, and waits for its acknowledgement.
func listening(endpoint string) (*events, error) {
	c, err := dialRaw(endpoint)
	if err != nil {
		return nil, err
	}
	e, err := c.stream(request(http.MethodPost, modernFields("subscriptions/listen"), listen))
	if err == nil {
		err = e.next()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return e, nil
}
