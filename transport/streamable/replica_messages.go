package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// peerMessage is a message between Servers that serve the same sessions.
type peerMessage struct {
	Kind      peerKind        `json:"kind"`
	From      string          `json:"from"`    // the instance that sends it
	Session   string          `json:"session"` // the id that the client sends
	Principal string          `json:"principal,omitempty"`
	Message   json.RawMessage `json:"message,omitempty"` // of the client
	Stream    string          `json:"stream,omitempty"`

	Takeover  uint64 `json:"takeover,omitempty"`  // of a peerTaken and its answer
	Resumes   bool   `json:"resumes,omitempty"`   // peerTaken: the client has sent Last-Event-ID
	LastEvent string `json:"lastEvent,omitempty"` // peerCarried: the id of the last event that the sender has stored

	Frames   []json.RawMessage `json:"frames,omitempty"`   // peerQueued: notifications for the client
	KnowsAll bool              `json:"knowsAll,omitempty"` // peerQueued: the sender has carried the stream, and these are all changes
}

type peerKind string

const (
	peerDeliver peerKind = "deliver" // a message of the client for a call of the receiver
	peerStream  peerKind = "stream"  // whether a stream is open
	peerTaken   peerKind = "taken"   // the sender carries the session stream now
	peerCarried peerKind = "carried" // the sender has carried it until then, and has stored each change
	peerQueued  peerKind = "queued"  // changes wait at the sender for a client that sends no Last-Event-ID
	peerMissed  peerKind = "missed"  // the client may miss changes of the time before
	peerSet     peerKind = "set"     // the sender has stored other settings of the client
)

var (
	answerYes = []byte("yes")
	answerNo  = []byte("no")
)

// joinReplicas receives messages of the replicas that share the keys, if there are any.
func (s *Server) joinReplicas() {
	s.leaveReplicas = func() {}
	network := replica.Of(s.opts.Sessions.Keys)
	if network == nil || s.opts.Sessions.Disabled || s.hasPrivateStore() {
		return
	}
	leave, err := network.Receive(s.edge.Instance(), s.receivePeer)
	if err != nil {
		s.opts.Logger.Error("answers that reach other replicas do not arrive here", "err", err)
		return
	}
	s.replicas, s.leaveReplicas = network, leave
}

// receivePeer handles a message of another replica. It implements [replica.Handler].
func (s *Server) receivePeer(ctx context.Context, data []byte) ([]byte, error) {
	var m peerMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("the message of a replica cannot be read: %w", err)
	}
	ss := s.sessions.peerSession(m)
	if ss == nil || m.From == s.edge.Instance() {
		return answerNo, nil
	}
	isDone := false
	switch m.Kind {
	case peerDeliver:
		msg, err := s.edge.Parse(m.Message)
		isDone = err == nil && !msg.IsRequest() && ss.edge.Receive(msg)
	case peerStream:
		isDone = ss.answerStream(m.Stream) != nil
	case peerTaken:
		isDone = s.yieldStream(ctx, ss, m)
	case peerCarried, peerQueued, peerMissed:
		isDone = ss.noteAnswer(ctx, m)
	case peerSet:
		isDone = s.sessions.syncWithStore(ctx, ss) == nil
	}
	if isDone {
		return answerYes, nil
	}
	return answerNo, nil
}

// peerSession returns the session in this process that a message is about, or nil.
func (g *sessionRegistry) peerSession(m peerMessage) *session {
	g.mu.Lock()
	ss := g.sessions.Get(g.fingerprintOf(m.Session))
	g.mu.Unlock()
	if ss == nil || ss.principal != m.Principal {
		return nil
	}
	return ss
}

// newPeerMessage returns a message about the session of a request.
func (s *Server) newPeerMessage(r *http.Request, ss *session, kind peerKind) peerMessage {
	return peerMessage{Kind: kind, From: s.edge.Instance(), Session: r.Header.Get(mcpwire.HeaderSessionID), Principal: ss.principal}
}

// askPeer sends a message to an instance. It reports whether the answer is yes.
func (s *Server) askPeer(ctx context.Context, instance string, m peerMessage) (bool, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	answer, err := s.replicas.Send(ctx, instance, data)
	return string(answer) == string(answerYes), err
}

// tellPeers sends a message to all replicas. One that does not get it, does not need it.
func (s *Server) tellPeers(m peerMessage) {
	data, err := json.Marshal(m)
	if err == nil {
		err = s.replicas.SendAll(data)
	}
	if err != nil {
		s.opts.Logger.Warn("the other replicas could not be told of a message", "kind", m.Kind, "err", err)
	}
}

var errNoSuchQuestion = errors.New("the response matches no open request of this server: the call that asked has ended, or the load balancer must keep each session at one replica")

// deliverMessage passes a notification or a response of the client to the call that it is for, in
// this process or at another replica.
func (s *Server) deliverMessage(r *http.Request, ss *session, msg jsonrpc.Message) error {
	isResponse := msg.IsResponse()
	switch {
	case ss.edge.Receive(msg):
		if s.replicas != nil && msg.Method == mcpwire.NotificationCancelled {
			m := s.newPeerMessage(r, ss, peerDeliver)
			m.Message = jsonrpc.AppendNotification(nil, msg.Method, msg.Params)
			s.tellPeers(m) // only the client knows where the call runs
		}
		return nil
	case s.replicas == nil || !isResponse:
		return errNoSuchQuestion
	}
	owner, ok := serving.InstanceOfQuestion(msg.ID)
	if !ok || owner == s.edge.Instance() {
		return errNoSuchQuestion
	}
	m := s.newPeerMessage(r, ss, peerDeliver)
	if m.Message = jsonrpc.AppendResult(nil, msg.ID, msg.Result); msg.Error != nil {
		m.Message = jsonrpc.AppendError(nil, msg.ID, msg.Error)
	}
	isTaken, err := s.askPeer(r.Context(), owner, m)
	switch {
	case errors.Is(err, replica.ErrGone):
		return errors.New("the replica that asked has ended, and its call with it: call again")
	case err != nil:
		return fmt.Errorf("the replica that asked could not get the answer: %w", err)
	case !isTaken:
		return errNoSuchQuestion
	}
	return nil
}
