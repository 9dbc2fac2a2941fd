// Command gosdk-resume is a client of 2025-11-25 on the official Go SDK whose connections are lost
// while a call runs. The SDK asks for the rest of the stream by Last-Event-ID, and a load balancer
// gives that request to another replica. It prints one JSON line per check. The server has the tool
// slow of dowel's everything.
//
//	gosdk-resume URL
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/interop/peers/report"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: gosdk-resume URL")
	}
	r := report.New(os.Stdout, nil)
	p := &peer{}
	r.Run("connect", func() error { return p.connect(os.Args[1]) })
	if p.session != nil {
		for _, round := range []string{"first", "second", "third"} {
			r.Run(round+" call", p.callSlowly)
		}
		r.Run("close", p.session.Close)
	}
	os.Exit(r.Finish())
}

type peer struct {
	session *mcp.ClientSession
	cutter  cutter

	mu   sync.Mutex
	seen []float64 // the progress of the current call
}

func (p *peer) connect(url string) (err error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "gosdk-resume", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.seen = append(p.seen, req.Params.Progress)
		},
	})
	p.session, err = client.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: &p.cutter}},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	return err
}

// callSlowly makes a call whose stream is cut twice. No report of progress may be missing or come
// twice.
func (p *peer) callSlowly() error {
	p.mu.Lock()
	p.seen = nil
	p.mu.Unlock()
	p.cutter.begin()
	params := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 3}}
	params.SetProgressToken(fmt.Sprint("at ", time.Now().UnixNano()))
	ctx, cancel := context.WithTimeout(context.Background(), report.Limit)
	defer cancel()
	result, err := p.session.CallTool(ctx, params)
	replicas := p.cutter.end()
	if err != nil {
		return err
	}
	if text, ok := result.Content[0].(*mcp.TextContent); result.IsError || !ok || !strings.HasPrefix(text.Text, "Took 3s") {
		return fmt.Errorf("the result is %+v", result.Content[0])
	}
	seen := p.awaitReports(ctx)
	for n, progress := range seen {
		if progress != float64(n) {
			return fmt.Errorf("report %d of the progress is missing, or another one came twice: %v", n, seen)
		}
	}
	switch {
	case len(seen) != reports:
		return fmt.Errorf("%d reports of progress, want %d: %v", len(seen), reports, seen)
	case len(replicas) != 3:
		return fmt.Errorf("the streams of the call came from %v, want three", replicas)
	case len(slices.Compact(slices.Sorted(slices.Values(replicas)))) < 2:
		return fmt.Errorf("all streams of the call came from %v", replicas)
	}
	return nil
}

// reports is the number of reports of progress of a call.
const reports = 21

// awaitReports waits until the SDK has passed all reports on, which it may do after the result of
// the call.
func (p *peer) awaitReports(ctx context.Context) []float64 {
	for ; ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		seen := slices.Clone(p.seen)
		p.mu.Unlock()
		if len(seen) >= reports || ctx.Err() != nil {
			return seen
		}
	}
}

// cutter cuts the first two event streams of a call after a report of progress.
type cutter struct {
	mu       sync.Mutex
	isOn     bool
	replicas []string // that have sent the streams of the current call
}

func (c *cutter) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isOn, c.replicas = true, nil
}

func (c *cutter) end() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isOn = false
	return c.replicas
}

// RoundTrip implements [http.RoundTripper].
func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "" {
		return res, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isOn {
		return res, nil
	}
	if c.replicas = append(c.replicas, res.Header.Get("X-Replica")); len(c.replicas) <= 2 {
		res.Body = &cutBody{ReadCloser: res.Body}
	}
	return res, nil
}

// cutBody is an event stream whose connection is lost after a report of progress.
type cutBody struct {
	io.ReadCloser
	read []byte
	lost bool
}

var errLost = errors.New("the connection is lost")

func (b *cutBody) Read(data []byte) (int, error) {
	if b.lost {
		return 0, errLost
	}
	n, err := b.ReadCloser.Read(data)
	b.read = append(b.read, data[:n]...)
	at := bytes.Index(b.read, []byte("notifications/progress"))
	b.lost = at >= 0 && bytes.Contains(b.read[at:], []byte("\n\n"))
	return n, err
}
