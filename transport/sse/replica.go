package sse

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// A stream stays at the replica that has opened it, its owner. The session id begins with the
// instance of the owner, so any other replica can pass the message of a POST to it.

// peers are the replicas that share the keys of a Server. It is zero without replicas.
type peers struct {
	network  replica.Network // nil without replicas
	sealer   *mcp.Sealer     // seals forwarded messages
	instance string          // the name of this Server in session ids
	leave    func()          // ends the reception of forwarded messages; nil without replicas
}

// instancePrefix begins the names of these instances in the network, so that a session id that a
// client has made up leads to no instance of another kind.
const instancePrefix = "sse-"

const (
	instanceLength   = 10
	instanceAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" // of rand.Text
)

// joinReplicas receives messages of the replicas that share the keys, if there are any.
func (s *Server) joinReplicas() {
	keys := s.opts.Sessions.Keys
	if k, ok := s.handler.(interface{ Keys() *mcp.Keys }); keys == nil && ok {
		keys = k.Keys()
	}
	network := replica.Of(keys)
	if network == nil {
		return
	}
	p := peers{network: network, sealer: keys.For("sse message"), instance: rand.Text()[:instanceLength]}
	s.peers = p // before the first message arrives
	leave, err := network.Receive(instancePrefix+p.instance, s.receiveForwarded)
	if err != nil {
		s.opts.Logger.Error("messages of HTTP+SSE that reach other replicas do not arrive here", "err", err)
		s.peers = peers{}
		return
	}
	s.peers.leave = leave
}

// newSessionID returns an id of 130 random bits, after the instance if there are replicas.
func (p *peers) newSessionID() string {
	if p.network == nil {
		return rand.Text()
	}
	return p.instance + "-" + rand.Text()
}

// ownerOf returns the instance of another replica that a session id names, or "".
func (p *peers) ownerOf(id string) string {
	instance, secret, _ := strings.Cut(id, "-")
	isInstance := len(instance) == instanceLength && strings.Trim(instance, instanceAlphabet) == ""
	if p.network == nil || !isInstance || secret == "" || instance == p.instance {
		return ""
	}
	return instance
}

// forwardedHead is the part of a forwarded message before the frame. It is sealed together with the
// frame, because the header has credentials.
type forwardedHead struct {
	Session   string        `json:"session"`
	Principal mcp.Principal `json:"principal"`
	Header    http.Header   `json:"header"`
}

// delivery is the owner's answer to a forwarded message.
type delivery string

const (
	deliveryAccepted     delivery = "accepted"
	deliveryUnknown      delivery = "unknown"       // the session is not, or no longer, at this owner
	deliveryNotYours     delivery = "not yours"     // the session belongs to another principal
	deliveryShuttingDown delivery = "shutting down" // the owner takes no more requests
	deliveryBusy         delivery = "busy"          // the session has not taken the message in time
)

// forwardPOST passes the message of a POST to the owner of its session.
func (s *Server) forwardPOST(w http.ResponseWriter, r *http.Request, owner, id string) {
	principal := s.opts.Principal(r)
	frame, ok := s.bodies.Read(w, r, principal)
	if !ok || !s.checkMessage(w, r, frame, principal) {
		return
	}
	answer, err := s.peers.forward(r.Context(), owner, forwardedHead{id, principal, r.Header}, frame)
	switch {
	case err == nil:
		s.answerForwarded(w, answer)
	case r.Context().Err() != nil: // the client has gone
	case errors.Is(err, replica.ErrGone):
		s.answerForwarded(w, deliveryUnknown)
	case errors.Is(err, replica.ErrTooLarge):
		httpwire.Refuse(w, http.StatusRequestEntityTooLarge, "the stream of the session is at another replica: "+err.Error())
	case errors.Is(err, replica.ErrUnreachable):
		httpwire.RefuseBusy(w, jsonrpc.ID{}, err.Error(), retryAfter)
	default:
		s.opts.Logger.Error("a message of HTTP+SSE could not be passed to another replica", "err", err)
		httpwire.RefuseBusy(w, jsonrpc.ID{}, "the replica with the stream of the session could not take the message", retryAfter)
	}
}

// answerForwarded answers a POST as the owner of its session would.
func (s *Server) answerForwarded(w http.ResponseWriter, d delivery) {
	switch d {
	case deliveryAccepted:
		w.WriteHeader(http.StatusAccepted)
	case deliveryNotYours:
		refuseOther(w)
	case deliveryShuttingDown:
		httpwire.RefuseBusy(w, jsonrpc.ID{}, httpwire.ErrShutdown.Error(), retryAfter)
	default:
		refuseEnded(w)
	}
}

// forward sends a message to the owner of its session. While the session is busy, it tries again,
// until ctx ends: a client that reads slowly waits as it would at the owner.
func (p *peers) forward(ctx context.Context, owner string, head forwardedHead, frame []byte) (delivery, error) {
	plain, err := json.Marshal(head)
	if err != nil {
		return "", err
	}
	data := append([]byte(p.sealer.Seal(plain, frame)), '\n')
	data = append(data, frame...)
	for {
		answer, err := p.network.Send(ctx, instancePrefix+owner, data)
		if err != nil || delivery(answer) != deliveryBusy {
			return delivery(answer), err
		}
	}
}

// receiveForwarded delivers a message that has reached another replica. It implements
// [replica.Handler].
func (s *Server) receiveForwarded(ctx context.Context, data []byte) ([]byte, error) {
	sealed, frame, found := bytes.Cut(data, []byte("\n"))
	if !found {
		return nil, nil // a message to all instances, of another kind
	}
	plain, err := s.peers.sealer.Open(string(sealed), frame)
	if err != nil {
		return nil, fmt.Errorf("the message of a replica cannot be opened: %w", err)
	}
	var head forwardedHead
	if err := json.Unmarshal(plain, &head); err != nil {
		return nil, fmt.Errorf("the message of a replica cannot be read: %w", err)
	}
	return []byte(s.deliverForwarded(ctx, head, frame)), nil
}

// busyAfter bounds how long a forwarded message waits for its session. The sender waits a second
// for the answer.
const busyAfter = 500 * time.Millisecond

// deliverForwarded passes a message of another replica to its session in this process.
func (s *Server) deliverForwarded(ctx context.Context, head forwardedHead, frame []byte) delivery {
	ss, ok := s.sessions.Find(head.Session)
	switch {
	case !ok:
		return deliveryUnknown
	case head.Principal.ID != ss.principal.ID:
		return deliveryNotYours
	case s.sessions.IsClosing() && isRequest(frame):
		return deliveryShuttingDown
	}
	ss.idleTimer.noteMessage()
	header := http.Header{mcpwire.HeaderSessionID: {ss.id}}
	for name, values := range head.Header {
		if name != mcpwire.HeaderSessionID {
			header[name] = values
		}
	}
	ctx, cancel := context.WithTimeout(ctx, busyAfter)
	defer cancel()
	switch {
	case ss.deliverMessage(ctx, message{frame, header, head.Principal}):
		return deliveryAccepted
	case ctx.Err() != nil:
		return deliveryBusy
	}
	return deliveryUnknown
}

// isRequest reports whether a frame needs an answer. A batch counts as a request, and so does a
// malformed message.
func isRequest(frame []byte) bool {
	if mcpwire.IsBatch(frame) {
		return true
	}
	msg, err := jsonrpc.Parse(frame, nil)
	return err != nil || msg.IsRequest()
}
