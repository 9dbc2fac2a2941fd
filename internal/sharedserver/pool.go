// Package sharedserver runs a server once for all replicas of a cluster, or opens one session at
// it. The replica that holds the lease of the server, its owner, connects to it. The others connect
// to the owner: their messages travel over the network of the replicas, and the owner serves them
// as one more client.
//
// A [Pool] is the part of one process. It makes targets of package client, which take the lease or
// find its holder at each dial. When the owner ends, the connections to it fail at once, and a
// later dial takes the lease.
package sharedserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// ErrStarting is the error of [Options.Serve] while the server starts.
var ErrStarting = errors.New("the server is starting")

// Options configure a [Pool]. All fields are required.
type Options struct {
	Network replica.Network
	Values  replica.Values
	// Serve returns a handler for a server that this process owns. The error says why it cannot be
	// used; with [ErrStarting], the other replica asks again.
	Serve func(server string) (mcp.Handler, error)
	// Redial begins another dial of a server that could not be dialed, because its owner has
	// changed. It reports false if the last dial has not ended yet.
	Redial func(server string) (ok bool)
	// Restart starts a server again that this process owns, for a user at another replica.
	Restart func(server string) error
	Logger  *slog.Logger
}

// A connection carries the requests of all clients of another replica. So it has no limits of a
// client; those of the principals apply in the handler. Bytes has its default.
var manyClients = transport.Limits{ClientBytes: -1, Streams: -1, ClientStreams: -1, Sessions: -1, ClientSessions: -1, Questions: -1, ClientQuestions: -1}

// maxRequests bounds the requests in flight on a connection.
const maxRequests = 1 << 16

// A Pool knows the owners of servers. It is safe for concurrent use.
type Pool struct {
	opts     Options
	quota    *transport.Quota
	instance string
	leave    func()
	ctx      context.Context
	cancel   context.CancelFunc

	mu      sync.Mutex
	servers map[serverID]*server
	conns   map[string]*conn // by id
	running sync.WaitGroup   // not added to after ctx has ended; guarded by mu
}

// Join makes this process one of the replicas that share servers. The caller must call Close.
func Join(o Options) (*Pool, error) {
	p := &Pool{opts: o, quota: transport.NewQuota(manyClients), instance: newInstance(), servers: map[serverID]*server{}, conns: map[string]*conn{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	leave, err := o.Network.Receive(p.instance, p.receive)
	if err != nil {
		p.cancel()
		return nil, fmt.Errorf("servers cannot be shared with other replicas: %w", err)
	}
	p.leave = leave
	return p, nil
}

// Close ends all connections. The servers must have ended before.
func (p *Pool) Close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.leave()
	p.running.Wait()
}

// startGoroutine runs f unless the pool is closed.
func (p *Pool) startGoroutine(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil {
		p.running.Go(f)
	}
}

var notInName = lazyregexp.New(`[^A-Za-z0-9-]+`)

// newInstance returns a name for this process. Users see the host and the process in it.
func newInstance() string {
	host, _ := os.Hostname()
	host = strings.Trim(notInName().ReplaceAllString(host, "-"), "-")
	return fmt.Sprintf("servers_%s_%d_%s", host[:min(len(host), 63)], os.Getpid(), rand.Text()[:10])
}

// describeInstance returns an instance in words.
func describeInstance(instance string) string {
	parts := strings.Split(instance, "_")
	if len(parts) != 4 {
		return "another replica"
	}
	return "the replica at " + parts[1] + " (process " + parts[2] + ")"
}

// hasConn reports whether there is a connection with that id.
func (p *Pool) hasConn(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[id] != nil
}

// serverID tells servers apart. entry is "" if the name is enough.
type serverID struct{ name, entry string }

// server returns what the pool knows of a server.
func (p *Pool) server(name, entry string) *server {
	id := serverID{name, entry}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[id]
	if s == nil {
		s = &server{pool: p, name: name, entry: entry}
		p.servers[id] = s
	}
	return s
}

// message is the head of a message between two pools. The bytes of a frame may follow it.
type message struct {
	Kind   string `json:"sharedServer"`
	From   string `json:"from,omitempty"`
	Server string `json:"server,omitempty"`
	Entry  string `json:"entry,omitempty"` // identifies the entry of the server; "" if its name is enough
	Conn   string `json:"conn,omitempty"`
	Number uint64 `json:"number,omitempty"` // of a part of a frame
	More   bool   `json:"more,omitempty"`   // another part of the frame follows
}

const (
	openConn  = "open"  // connect to a server that the receiver owns
	framePart = "part"  // a part of a frame
	closeConn = "close" // the connection ends; the reason follows
	checkConn = "check" // whether the connection is there
	checkPool = "alive" // whether the process is there

	connHasRoom   = "room"    // after answerFull: the part can be sent again
	checkServer   = "ready"   // whether the receiver serves a server
	restartServer = "restart" // start a server that the receiver owns again
)

// Answers to messages.
var (
	answerNoSession = []byte("alone")    // to openConn: the server opens no session, so each replica connects to it
	answerStarting  = []byte("starting") // to openConn: ask again
	answerFailed    = []byte("failed: ") // to openConn: the server cannot be used; the reason follows
	answerReady     = []byte("ready")    // to checkServer
	answerFull      = []byte("full")     // to framePart: send it again after connHasRoom
)

func (m message) encode(data []byte) []byte {
	head, _ := json.Marshal(m) // strings and numbers can be encoded
	return append(append(head, '\n'), data...)
}

// receive handles a message of another pool. It implements [replica.Handler].
func (p *Pool) receive(_ context.Context, text []byte) (answer []byte, err error) {
	head, data, _ := bytes.Cut(text, []byte("\n"))
	var m message
	if json.Unmarshal(head, &m) != nil {
		return nil, nil // for all instances, and of another kind
	}
	switch m.Kind {
	case openConn:
		return p.server(m.Server, m.Entry).accept(m)
	case checkServer:
		return p.server(m.Server, m.Entry).describeReadiness(), nil
	case restartServer:
		return nil, p.server(m.Server, m.Entry).restart()
	case framePart, closeConn, checkConn, connHasRoom:
		p.mu.Lock()
		c := p.conns[m.Conn]
		p.mu.Unlock()
		if c == nil {
			return nil, errors.New("the connection has ended")
		}
		return c.receive(m, data)
	}
	return nil, nil
}
