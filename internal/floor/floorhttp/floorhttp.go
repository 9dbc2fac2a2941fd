// Package floorhttp is the floor over HTTP. It is apart, so that the floor on stdio links no HTTP.
package floorhttp

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/dowel-mcp/dowel/internal/floor"
)

// Handler answers calls over HTTP, each with one JSON document.
func Handler() http.Handler {
	workers := sync.Pool{New: func() any { return new(floor.Worker) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			panic(err)
		}
		worker := workers.Get().(*floor.Worker)
		frame := worker.Answer(body)
		workers.Put(worker)
		w.Header()["Content-Type"] = jsonType
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(frame))}
		_, _ = w.Write(frame)
	})
}

var (
	jsonType = []string{"application/json"}
	accept   = []string{"application/json, text/event-stream"}
	version  = []string{"2026-07-28"}
	method   = []string{"tools/call"}
	name     = []string{"echo"}
)

// Poster calls over HTTP.
type Poster struct {
	URL    string
	Client *http.Client
}

// Call sends one call and decodes the text of its result.
func (p *Poster) Call(message string) string {
	r, err := http.NewRequest(http.MethodPost, p.URL, bytes.NewReader(floor.Request(message)))
	if err != nil {
		panic(err)
	}
	r.Header["Content-Type"], r.Header["Accept"] = jsonType, accept
	r.Header["Mcp-Protocol-Version"], r.Header["Mcp-Method"], r.Header["Mcp-Name"] = version, method, name
	resp, err := p.Client.Do(r)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	frame := make([]byte, resp.ContentLength)
	if _, err := io.ReadFull(resp.Body, frame); err != nil {
		panic(err)
	}
	_, _ = resp.Body.Read(make([]byte, 1)) // the end, so that the connection is used again
	return floor.Text(frame)
}
