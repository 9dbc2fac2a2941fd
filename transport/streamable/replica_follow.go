package streamable

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// eventWatcher is an [EventStore] that tells of the events that other replicas append.
type eventWatcher interface {
	// Watch calls changed after each event that is added to a stream, until stop is called.
	Watch(stream string, changed func()) (stop func(), err error)
}

// maxMarkedID bounds the request ids that the names of streams contain, in bytes.
const maxMarkedID = 48

// requestMark ends the name of the answer's stream with the id of the request, so that a replica
// which takes over the stream can answer the request if this process has ended.
func (a *answerStream) requestMark() string {
	single, ok := a.incoming.(singleRequest)
	if !ok || a.session.server.replicas == nil {
		return ""
	}
	id := single.ID.Append(nil)
	if len(id) > maxMarkedID {
		return ""
	}
	return "." + base64.RawURLEncoding.EncodeToString(id)
}

// markedRequest returns the id of the request in the name of an answer stream. It is zero if the
// name has none.
func markedRequest(name string) jsonrpc.ID {
	raw, err := base64.RawURLEncoding.DecodeString(name[strings.LastIndexByte(name, '.')+1:])
	if err != nil {
		return jsonrpc.ID{}
	}
	id, _ := jsonrpc.ParseID(raw)
	return id
}

// streamOwner returns the instance that has named an answer stream of the session.
func (ss *session) streamOwner(name string) string {
	owner, _, _ := strings.Cut(strings.TrimPrefix(name, ss.key+answerStreamMark), "-")
	return owner
}

// followedAnswer is the connection of a GET that resumes the answer of a call at another replica.
type followedAnswer struct {
	server  *Server
	session *session
	request *http.Request
	name    string
	owner   string // the instance that runs the call
	last    string // the id of the last event that the client has
	conn    *eventstream.Writer
	changed chan struct{} // has an element when there may be a new event
}

// followInterval is the time between two checks that the owner still has the stream.
const followInterval = time.Second

// followAnswer continues an answer stream of another replica, after the event with id last. It
// reports false if no other replica has the stream open or has lost it: then the store has all of
// its events.
func (s *Server) followAnswer(w http.ResponseWriter, r *http.Request, ss *session, name, last string) bool {
	owner := ss.streamOwner(name)
	store, ok := s.opts.Sessions.Events.(eventWatcher)
	if s.replicas == nil || !ok || owner == s.edge.Instance() {
		return false
	}
	f := &followedAnswer{server: s, session: ss, request: r, name: name, owner: owner, last: last, changed: make(chan struct{}, 1)}
	stop, err := store.Watch(name, f.noteChange)
	if err != nil {
		return false // the store cannot be read either
	}
	defer stop()
	isOpen, err := f.isOpen()
	if !isOpen && !errors.Is(err, replica.ErrGone) || f.hasEnded() {
		return false
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer s.onShutdown(cancel)()
	f.conn = s.newEventWriter(w, ss.client)
	f.conn.OnDeath(cancel)
	if f.conn.Open() == nil {
		f.sendAll(ctx)
	}
	_ = f.conn.Close() // after an error the client reconnects
	return true
}

func (f *followedAnswer) noteChange() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// isOpen reports whether the owner has the stream open. The error is [replica.ErrGone] if the owner
// has ended.
func (f *followedAnswer) isOpen() (bool, error) {
	m := f.server.newPeerMessage(f.request, f.session, peerStream)
	m.Stream = f.name
	return f.server.askPeer(f.request.Context(), f.owner, m)
}

// hasEnded reports whether the store has the end of the stream, or cannot read it.
func (f *followedAnswer) hasEnded() bool {
	events, err := f.server.opts.Sessions.Events.After(f.request.Context(), f.last)
	if err != nil {
		return true
	}
	for _, data := range events {
		if isAnswer(data) {
			return true
		}
	}
	return false
}

// isAnswer reports whether a frame is the response to the request of its stream, which ends it: one
// response, or a batch of them. A question of the server is no response.
func isAnswer(frame []byte) bool {
	return len(frame) > 0 && (frame[0] == '[' || rawjson.Lookup(frame, "method") == nil)
}

// sendAll sends the events of the stream as they come, until it has ended.
func (f *followedAnswer) sendAll(ctx context.Context) {
	check := time.NewTicker(followInterval)
	defer check.Stop()
	for {
		if isOver := f.sendNew(ctx); isOver {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
			continue
		case <-check.C:
		}
		isOpen, err := f.isOpen()
		if isOpen || err != nil && !errors.Is(err, replica.ErrGone) {
			continue // if the owner does not answer, the client can reconnect
		}
		if !f.sendNew(ctx) {
			f.sendLoss(err)
		}
		return
	}
}

// sendNew sends the events that the client does not have. It reports whether the stream is over, or
// the connection.
func (f *followedAnswer) sendNew(ctx context.Context) (isOver bool) {
	events, err := f.server.opts.Sessions.Events.After(ctx, f.last)
	if err != nil {
		return ctx.Err() != nil || errors.Is(err, ErrEventGone)
	}
	for id, data := range events {
		frames.ShowIn(f.request.Context(), f.server.opts.Tap, transport.Sent, data, nil)
		if f.conn.Send(eventstream.Event{ID: id, HasID: true, Data: data}) != nil {
			return true
		}
		if f.last = id; isAnswer(data) {
			return true
		}
	}
	return false
}

// sendLoss answers the request of a stream whose owner has ended before it did.
func (f *followedAnswer) sendLoss(err error) {
	id := markedRequest(f.name)
	if !errors.Is(err, replica.ErrGone) || id.IsZero() {
		return
	}
	lost := mcp.Errorf(jsonrpc.CodeInternal, "the replica that ran this call has ended before it answered: the call may have had an effect; check that before you call again")
	_ = f.conn.End(eventstream.Event{Data: jsonrpc.AppendError(nil, id, lost)}) // after an error the client reconnects
}
