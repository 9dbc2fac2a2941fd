package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/dowel-mcp/dowel/interop/peers/report"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const extensionTasks = "io.modelcontextprotocol/tasks"

// answer is the answer to each question.
var answer = map[string]any{"action": "accept", "content": map[string]any{"Name": "Ada"}}

// wire is a connection of the SDK's transport, on which requests are sent as they are.
type wire struct {
	conn         mcp.Connection
	revision     string
	discovered   json.RawMessage // what the server has said about itself
	capabilities struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
		Tasks      struct {
			Requests struct {
				Tools struct {
					Call json.RawMessage `json:"call"`
				} `json:"tools"`
			} `json:"requests"`
		} `json:"tasks"`
	}

	mu       sync.Mutex
	requests int
	waiting  map[jsonrpc.ID]chan *jsonrpc.Response
	replicas map[string]bool // that have answered
}

// dial connects to a server and asks for its capabilities.
func dial(url, revision string) (*wire, error) {
	w := &wire{revision: revision, waiting: map[jsonrpc.ID]chan *jsonrpc.Response{}, replicas: map[string]bool{}}
	var err error
	w.conn, err = (&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: w}}).Connect(context.Background())
	if err != nil {
		return nil, err
	}
	go w.read()
	if revision == modern {
		w.discovered, err = w.call("server/discover", map[string]any{})
	} else {
		w.discovered, err = w.call("initialize", map[string]any{"protocolVersion": revision,
			"capabilities": map[string]any{"elicitation": map[string]any{}}, "clientInfo": clientInfo})
	}
	if err != nil {
		return nil, err
	}
	var server struct {
		Capabilities any `json:"capabilities"`
	}
	server.Capabilities = &w.capabilities
	if err := json.Unmarshal(w.discovered, &server); err != nil || revision == modern {
		return w, err
	}
	return w, w.conn.Write(context.Background(), &jsonrpc.Request{Method: "notifications/initialized"})
}

var clientInfo = map[string]any{"name": "gosdk-tasks", "version": "1.0.0"}

// call sends a request and returns its result.
func (w *wire) call(method string, params map[string]any) (json.RawMessage, error) {
	if w.revision == modern {
		params["_meta"] = map[string]any{
			mcp.MetaKeyProtocolVersion: modern, mcp.MetaKeyClientInfo: clientInfo,
			mcp.MetaKeyClientCapabilities: map[string]any{"elicitation": map[string]any{}, "extensions": map[string]any{extensionTasks: map[string]any{}}},
		}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	response := make(chan *jsonrpc.Response, 1)
	w.mu.Lock()
	w.requests++
	id, err := jsonrpc.MakeID("request-" + strconv.Itoa(w.requests))
	w.waiting[id] = response
	w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), report.Limit)
	defer cancel()
	if err := w.conn.Write(ctx, &jsonrpc.Request{ID: id, Method: method, Params: raw}); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	select {
	case r := <-response:
		if r.Error != nil {
			return nil, fmt.Errorf("%s: %w", method, r.Error)
		}
		return r.Result, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// read passes responses on and answers questions, until the connection ends.
func (w *wire) read() {
	for {
		m, err := w.conn.Read(context.Background())
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			w.mu.Lock()
			waiting := w.waiting[m.ID]
			delete(w.waiting, m.ID)
			w.mu.Unlock()
			if waiting != nil {
				waiting <- m
			}
		case *jsonrpc.Request:
			if m.IsCall() && m.Method == "elicitation/create" {
				result, _ := json.Marshal(answer) // plain data
				go w.conn.Write(context.Background(), &jsonrpc.Response{ID: m.ID, Result: result})
			}
		}
	}
}

// RoundTrip implements [http.RoundTripper]. It adds the header fields that the SDK's client and not
// its transport adds, or that only tasks need.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(orEmpty(r.Body))
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Set("Mcp-Protocol-Version", w.revision)
	var m struct {
		Params struct {
			TaskID string `json:"taskId"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) == nil && m.Params.TaskID != "" && w.revision == modern {
		r.Header.Set("Mcp-Name", m.Params.TaskID)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.replicas[res.Header.Get("X-Replica")] = true
	}
	return res, err
}

func orEmpty(body io.ReadCloser) io.Reader {
	if body == nil {
		return http.NoBody
	}
	return body
}

// checkReplicas returns an error unless several replicas have answered.
func (w *wire) checkReplicas() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.replicas) < 2 {
		return fmt.Errorf("only %v has answered", w.replicas)
	}
	return nil
}

func (w *wire) close() error {
	if err := w.conn.Close(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
