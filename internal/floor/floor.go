// Package floor is the minimal code for the wire work of an MCP call, which no implementation can
// beat by much. It scans envelopes by hand, decodes arguments once, encodes a result once, checks
// nothing, and passes each message to another goroutine through a channel. Benchmarks report
// dowel's time as a multiple of the floor in the same run.
package floor

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/go-json-experiment/json"
)

// Link carries frames in both directions.
type Link interface {
	Read() ([]byte, error)
	Write([]byte) error
	Close() error
}

// Memory returns the two ends of a link of channels.
func Memory() (a, b Link) {
	there, back := make(chan []byte, 64), make(chan []byte, 64)
	done := make(chan struct{})
	var once sync.Once
	stop := func() { once.Do(func() { close(done) }) }
	return &channels{back, there, done, stop}, &channels{there, back, done, stop}
}

type channels struct {
	in   <-chan []byte
	out  chan<- []byte
	done chan struct{}
	stop func()
}

func (c *channels) Read() ([]byte, error) {
	select {
	case frame := <-c.in:
		return frame, nil
	case <-c.done:
		return nil, io.EOF
	}
}

func (c *channels) Write(frame []byte) error {
	select {
	case c.out <- frame:
		return nil
	case <-c.done:
		return io.EOF
	}
}

func (c *channels) Close() error { c.stop(); return nil }

// Lines returns a link of newline-delimited frames over a stream.
func Lines(rw io.ReadWriteCloser) Link {
	return &lines{rw: rw, in: bufio.NewReaderSize(rw, 64<<10)}
}

type lines struct {
	rw io.ReadWriteCloser
	in *bufio.Reader
	mu sync.Mutex
}

func (l *lines) Read() ([]byte, error) { return l.in.ReadBytes('\n') }

func (l *lines) Write(frame []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.rw.Write(append(frame, '\n'))
	return err
}

func (l *lines) Close() error { return l.rw.Close() }

// Echo holds the arguments of the called tool.
type Echo struct {
	Message string `json:"message"`
}

// Serve answers calls on a number of workers until the link is closed.
func Serve(l Link, workers int) {
	work := make(chan []byte)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var w Worker
			for frame := range work {
				_ = l.Write(w.Answer(frame))
			}
		})
	}
	for {
		frame, err := l.Read()
		if err != nil {
			break
		}
		work <- frame
	}
	close(work)
	wg.Wait()
}

// Worker holds memory that is reused from call to call.
type Worker struct {
	in  Echo
	out result
	buf bytes.Buffer
}

// Answer decodes a call and returns its response in new memory.
func (w *Worker) Answer(frame []byte) []byte {
	var id, params, args []byte
	for it := rawjson.Object(frame); it.Next(); {
		switch string(it.Key) {
		case "id":
			id = it.Value
		case "params":
			params = it.Value
		}
	}
	for it := rawjson.Object(params); it.Next(); {
		if string(it.Key) == "arguments" {
			args = it.Value
		}
	}
	if err := json.Unmarshal(args, &w.in); err != nil {
		panic(err)
	}
	w.buf = *bytes.NewBuffer(make([]byte, 0, 160+len(w.in.Message)+len(w.in.Message)/16))
	w.buf.WriteString(`{"jsonrpc":"2.0","id":`)
	w.buf.Write(id)
	w.buf.WriteString(`,"result":`)
	w.out = result{"complete", [1]content{{"text", w.in.Message}}}
	encodeInto(&w.buf, &w.out)
	return append(w.buf.Bytes(), '}')
}

type result struct {
	ResultType string     `json:"resultType"`
	Content    [1]content `json:"content"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func encodeInto(out *bytes.Buffer, v any) {
	if err := json.MarshalWrite(out, v); err != nil {
		panic(err)
	}
}

// Client makes calls. It is safe for concurrent use.
type Client struct {
	l       Link
	mu      sync.Mutex
	last    int
	pending map[int]chan []byte
	free    sync.Pool
	done    chan struct{}
}

// caller holds memory that is reused from call to call.
type caller struct {
	answer chan []byte
	in     Echo
	buf    bytes.Buffer
}

// NewClient returns a client that reads the link in a goroutine.
func NewClient(l Link) *Client {
	c := &Client{l: l, pending: map[int]chan []byte{}, done: make(chan struct{})}
	c.free.New = func() any { return &caller{answer: make(chan []byte, 1)} }
	go c.readAnswers()
	return c
}

func (c *Client) readAnswers() {
	defer close(c.done)
	for {
		frame, err := c.l.Read()
		if err != nil {
			return
		}
		id, _ := strconv.Atoi(string(rawjson.Lookup(frame, "id")))
		c.mu.Lock()
		answer := c.pending[id]
		delete(c.pending, id)
		c.mu.Unlock()
		answer <- frame
	}
}

// Close ends the link and waits for the reading goroutine.
func (c *Client) Close() {
	c.l.Close()
	<-c.done
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"floor","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},`

// Call sends one call and decodes the text of its result.
func (c *Client) Call(message string) string {
	x := c.free.Get().(*caller)
	x.in.Message = message
	frame := c.roundTrip(x, `,"method":"tools/call","params":{`+meta+`"name":"echo","arguments":`, &x.in, len(message)+len(message)/16)
	c.free.Put(x)
	return Text(frame)
}

// Request returns the frame of a call with id 1.
func Request(message string) []byte {
	out := append(make([]byte, 0, 384+len(message)+len(message)/16), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+meta+`"name":"echo","arguments":`...)
	b := bytes.NewBuffer(out)
	encodeInto(b, &Echo{message})
	return append(b.Bytes(), "}}"...)
}

// Text returns the text of a result.
func Text(frame []byte) string {
	it := rawjson.Array(rawjson.Lookup(rawjson.Lookup(frame, "result"), "content"))
	it.Next()
	text, _ := rawjson.String(rawjson.Lookup(it.Value, "text"))
	return text
}

func (c *Client) roundTrip(x *caller, head string, in any, size int) []byte {
	c.mu.Lock()
	c.last++
	id := c.last
	c.pending[id] = x.answer
	c.mu.Unlock()
	out := append(make([]byte, 0, 352+size), `{"jsonrpc":"2.0","id":`...)
	x.buf = *bytes.NewBuffer(append(strconv.AppendInt(out, int64(id), 10), head...))
	if in != nil {
		encodeInto(&x.buf, in)
	}
	_ = c.l.Write(append(x.buf.Bytes(), "}}"...))
	return <-x.answer
}

// ServeList answers every request with list, which it encodes each time.
func ServeList(l Link, list any) {
	work := make(chan []byte)
	var wg sync.WaitGroup
	wg.Go(func() {
		for frame := range work {
			out := append([]byte(`{"jsonrpc":"2.0","id":`), rawjson.Lookup(frame, "id")...)
			b := bytes.NewBuffer(append(out, `,"result":`...))
			if err := json.MarshalWrite(b, list); err != nil {
				panic(err)
			}
			_ = l.Write(append(b.Bytes(), '}'))
		}
	})
	for {
		frame, err := l.Read()
		if err != nil {
			break
		}
		work <- frame
	}
	close(work)
	wg.Wait()
}

// List requests a list and decodes it into v.
func (c *Client) List(v any) error {
	x := c.free.Get().(*caller)
	frame := c.roundTrip(x, `,"method":"tools/list","params":{`+meta[:len(meta)-1], nil, 0)
	c.free.Put(x)
	return json.Unmarshal(rawjson.Lookup(frame, "result"), v)
}

// FanOut sends one change, encoded once, to many links. Each receiver scans it and passes it on.
type FanOut struct{ links []Link }

// NewFanOut returns n receivers. Each sends to received for every change. The function that it
// returns closes the links and waits for the receivers.
func NewFanOut(n int, received chan<- struct{}) (*FanOut, func()) {
	f := &FanOut{}
	var wg sync.WaitGroup
	for range n {
		near, far := Memory()
		f.links = append(f.links, far)
		hand := make(chan []byte, 1)
		wg.Go(func() {
			defer close(hand)
			for {
				frame, err := near.Read()
				if err != nil {
					return
				}
				meta := rawjson.Lookup(rawjson.Lookup(frame, "params"), "_meta")
				if rawjson.Lookup(meta, "io.modelcontextprotocol/subscriptionId") != nil {
					hand <- frame
				}
			}
		})
		wg.Go(func() {
			for range hand {
				received <- struct{}{}
			}
		})
	}
	return f, func() {
		for _, l := range f.links {
			l.Close()
		}
		wg.Wait()
	}
}

// Send sends a change to all links.
func (f *FanOut) Send() {
	frame := []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`)
	for _, l := range f.links {
		_ = l.Write(frame)
	}
}
