package replica

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"
)

// Usage tells the other replicas how often each client has used something here. So a client that
// spreads its calls over the replicas gets one rate in all. A replica waits for no other: within
// usageInterval, each may let a part of a burst through that the others do not know of yet.
type Usage struct {
	opts     UsageOptions
	instance string
	leave    func()

	mu    sync.Mutex
	used  map[string]int // since the last message, by client
	timer *time.Timer    // sends the next message; nil if none is due
}

// UsageOptions configure a [Usage].
type UsageOptions struct {
	Network Network
	// Name is the name of the thing that is used, the same at all replicas.
	Name string
	// Burst is how often a client may use it at once.
	Burst int
	// Count counts the uses at another replica, by client. It is called concurrently.
	Count func(used map[string]int)
	// Divide is called after each message with the number by which this replica must divide
	// the rate: 1 while the others know of the uses here, else the number of replicas. It
	// is called concurrently.
	Divide func(by int)
}

// usageInterval is the time from a use to the message about it. A message follows at once when a
// client has used a part of its burst.
const usageInterval = 100 * time.Millisecond

// usageMessage is a message to all replicas.
type usageMessage struct {
	Kind     string         `json:"kind"` // usageKind
	Name     string         `json:"name,omitzero"`
	Instance string         `json:"instance"`
	Used     map[string]int `json:"used"`
}

const usageKind = "rate-used"

// ShareUsage begins to count the uses at other replicas. If they cannot be received, it only tells
// of those here.
func ShareUsage(o UsageOptions) *Usage {
	u := &Usage{opts: o, instance: "rate-" + rand.Text()[:10], leave: func() {}, used: map[string]int{}}
	if leave, err := o.Network.Receive(u.instance, u.receiveUses); err == nil {
		u.leave = leave
	}
	return u
}

// Close ends the reception of uses at other replicas.
func (u *Usage) Close() {
	if u != nil {
		u.leave()
	}
}

// receiveUses counts the uses at another replica. It implements [Handler].
func (u *Usage) receiveUses(_ context.Context, data []byte) ([]byte, error) {
	var m usageMessage
	if json.Unmarshal(data, &m) == nil && m.Kind == usageKind && m.Name == u.opts.Name && m.Instance != u.instance {
		u.opts.Count(m.Used)
	}
	return nil, nil
}

// Note remembers a use for the next message. It does nothing if u is nil.
func (u *Usage) Note(client string) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.used[client]++
	switch isMuch := u.used[client] > u.opts.Burst/4; {
	case u.timer == nil && isMuch:
		u.timer = time.AfterFunc(0, u.sendUses)
	case u.timer == nil:
		u.timer = time.AfterFunc(usageInterval, u.sendUses)
	case isMuch:
		u.timer.Reset(0)
	}
}

// sendUses tells the other replicas of the uses since the last message.
func (u *Usage) sendUses() {
	u.mu.Lock()
	used := u.used
	u.used, u.timer = map[string]int{}, nil
	u.mu.Unlock()
	if len(used) == 0 {
		return
	}
	data, err := json.Marshal(usageMessage{usageKind, u.opts.Name, u.instance, used})
	if err == nil {
		err = u.opts.Network.SendAll(data)
	}
	by := 1
	if n, ok := u.opts.Network.(interface{ State() State }); ok && err != nil {
		by = max(1, n.State().Replicas)
	}
	u.opts.Divide(by)
}
