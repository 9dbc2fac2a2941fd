// Package replica connects the processes that serve the same clients behind one address. Replicas
// share their sealing keys, so the keys lead to the [Network]: package cluster attaches one to its
// keys, and the transports and the gateway look it up.
package replica

import (
	"context"
	"errors"
	"sync"
)

// ErrGone is the error of [Network.Send] if no process has the instance: its process has ended, or
// was cut off from the network.
var ErrGone = errors.New("the replica has ended")

// ErrUnreachable is wrapped by the errors of a network, and of what is kept there, while this
// process cannot reach it.
var ErrUnreachable = errors.New("the cluster cannot be reached")

// ErrTooLarge is wrapped by the error of [Network.Send] if the message, or the answer, is larger
// than the network carries.
var ErrTooLarge = errors.New("too large for the cluster")

// Handler receives a message from another instance and returns the answer. It is called
// concurrently and should return within a second.
type Handler func(ctx context.Context, message []byte) (answer []byte, err error)

// A Network carries messages between the replicas. An instance is a part of a process that receives
// messages, such as an endpoint; its name is unique among all replicas and consists of letters,
// digits, - and _. The methods are called concurrently.
type Network interface {
	// Receive passes the messages for an instance, and those for all, to the handler until stop is
	// called.
	Receive(instance string, h Handler) (stop func(), err error)
	// Send sends a message to an instance and returns the answer. It fails at once with [ErrGone]
	// if no process has the instance.
	Send(ctx context.Context, instance string, message []byte) (answer []byte, err error)
	// SendAll sends a message to every instance, also to the instances of this process. Instances
	// that cannot be reached at the moment do not get it.
	SendAll(message []byte) error
}

// State describes the network of the replicas, a cluster, for the user.
type State struct {
	Name      string `json:"name"`
	Server    string `json:"server,omitempty"`  // the NATS server that this process uses
	Connected bool   `json:"connected"`         // this process reaches the cluster
	Problem   string `json:"problem,omitempty"` // why it does not
	Replicas  int    `json:"replicas"`          // processes with a lease, as last seen
	Copies    int    `json:"copies"`            // of all that is kept; 1 has no redundancy
	IsSmall   bool   `json:"isSmall,omitempty"` // the server has less room than the cluster should have
	Payload   int64  `json:"maxPayload"`        // the largest message in bytes
	Keys      string `json:"keys"`              // the state of the sealing keys
}

// Sync is how the NATS servers of a cluster write to the disk, as far as they tell.
type Sync string

// The values of [Sync].
const (
	SyncUnknown Sync = ""       // they do not tell this process
	SyncLazy    Sync = "lazy"   // one of them acknowledges a write before it is on the disk
	SyncAlways  Sync = "always" // every server that answered syncs each write
)

var networks sync.Map // of Network, by the pointer to the keys

// Attach makes Of return n for keys, a pointer to mcp.Keys. nil detaches it.
func Attach(keys any, n Network) {
	if n == nil {
		networks.Delete(keys)
		return
	}
	networks.Store(keys, n)
}

// Of returns the network of the replicas that share keys, a pointer to mcp.Keys. It returns nil if
// only this process has them.
func Of(keys any) Network {
	n, _ := networks.Load(keys)
	network, _ := n.(Network)
	return network
}
