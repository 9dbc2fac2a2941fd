package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/transport"
)

// Frames passes the frames between a hub and its servers to listeners. Without listeners a frame
// costs one atomic load. The zero value is ready to use, and safe for concurrent use.
type Frames struct {
	count     atomic.Int32 // number of listeners
	mu        sync.Mutex
	listeners map[*frameListener]bool
}

// frameListener holds the frames of one server until they are sent.
type frameListener struct {
	server string
	wake   chan struct{} // has room for one; a token means that frames wait
	queue  []transport.Frame
	bytes  int // of the queue's frames
	missed int // frames dropped since the last take
}

// maxFrameBytes limits the bytes of the frames that wait for one listener. One frame may be longer.
const maxFrameBytes = 16 << 20

// Tap returns the tap for the connections to a server.
func (f *Frames) Tap(server string) transport.Tap {
	return func(frame transport.Frame) {
		if f.count.Load() == 0 {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for l := range f.listeners {
			if l.server == server {
				l.enqueueFrame(frame)
			}
		}
	}
}

// enqueueFrame adds a copy of a frame. It drops the oldest frames if too many wait. The lock of
// Frames is held.
func (l *frameListener) enqueueFrame(frame transport.Frame) {
	for len(l.queue) > 0 && l.bytes+len(frame.Data) > maxFrameBytes {
		l.bytes -= len(l.queue[0].Data)
		l.queue = l.queue[1:]
		l.missed++
	}
	frame.Data = bytes.Clone(frame.Data)
	l.queue, l.bytes = append(l.queue, frame), l.bytes+len(frame.Data)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// addListener begins to collect the frames of a server.
func (f *Frames) addListener(server string) *frameListener {
	l := &frameListener{server: server, wake: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		f.listeners = map[*frameListener]bool{}
	}
	f.listeners[l] = true
	f.count.Add(1)
	return l
}

// removeListener ends the collection of frames.
func (f *Frames) removeListener(l *frameListener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listeners, l)
	f.count.Add(-1)
}

// takeFrames removes and returns the frames that wait, and the number of frames that were dropped
// before them.
func (f *Frames) takeFrames(l *frameListener) (frames []transport.Frame, missed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	frames, missed = l.queue, l.missed
	l.queue, l.bytes, l.missed = nil, 0, 0
	return frames, missed
}

// frameEvent is the JSON form of a frame, with masked secrets.
type frameEvent struct {
	Time   time.Time           `json:"time"`
	Kind   transport.FrameKind `json:"kind"`
	Text   string              `json:"text"`
	Header map[string][]string `json:"header,omitempty"`
	Missed int                 `json:"missed,omitzero"` // frames lost before this one
}

// streamFrames answers with the frames of a server from now on, one JSON object a line. The end of
// the request's body ends the answer, after all frames until then.
func streamFrames(w http.ResponseWriter, r *http.Request, h *hub.Hub, f *Frames, life context.Context) {
	u := h.Upstream(r.PathValue("name"))
	if u == nil || f == nil {
		writeOutcome(w, ErrNoServer)
		return
	}
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // fails for HTTP/2 only, which has it
	l := f.addListener(u.Name())
	defer f.removeListener(l)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, r.Body) // an error means that the client is gone
	}()
	w.WriteHeader(http.StatusOK)
	out, err := json.NewEncoder(w), control.Flush()
	for ended := false; err == nil && !ended; {
		select {
		case <-l.wake:
		case <-done:
			ended = true
		case <-life.Done():
			ended = true
		}
		err = f.writeFrames(out, l, u.Definition().Mask)
		err = errors.Join(err, control.Flush())
	}
}

// writeFrames writes the frames that wait for a listener. mask may be nil.
func (f *Frames) writeFrames(out *json.Encoder, l *frameListener, mask func(string) string) error {
	frames, missed := f.takeFrames(l)
	for _, frame := range frames {
		text := string(frame.Data)
		if mask != nil {
			text = mask(text)
		}
		if err := out.Encode(frameEvent{frame.Time, frame.Kind, secretmask.Text(text), frame.Header, missed}); err != nil {
			return err
		}
		missed = 0
	}
	return nil
}

// FollowFrames calls show with each frame between the running dowel and a server from now on, and
// with the number of frames that were lost before it. Secrets are masked. Calls of show do not
// overlap. stop ends this after all frames until now; it must be called.
func (c *Client) FollowFrames(ctx context.Context, server string, show func(f transport.Frame, missed int)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	body, end := io.Pipe()
	resp, err := c.sendBody(ctx, http.MethodPost, "/v1/servers/"+url.PathEscape(server)+"/frames", body) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		cancel()
		return nil, err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer resp.Body.Close()
		for in := json.NewDecoder(resp.Body); ; {
			var e frameEvent
			if in.Decode(&e) != nil {
				return // the running dowel ends, or the caller is done
			}
			show(transport.Frame{Time: e.Time, Kind: e.Kind, Data: []byte(e.Text), Header: e.Header}, e.Missed)
		}
	}()
	return func() {
		defer cancel()
		end.Close()
		select {
		case <-read:
		case <-time.After(stopTimeout):
			cancel()
			<-read
		}
	}, nil
}

// stopTimeout limits how long the end of [Client.FollowFrames] waits for the last frames.
const stopTimeout = 5 * time.Second
