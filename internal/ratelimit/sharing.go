package ratelimit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	xrate "golang.org/x/time/rate"
)

// sharing tells the other replicas which calls this one has let through. So a client that spreads its
// calls over the replicas gets one rate in all. A replica waits for no other: within shareInterval, each
// replica may let a part of a burst through that the others do not know of yet. While the cluster
// cannot be reached, each replica has its share of the rate.
type sharing struct {
	limiter  *Limiter
	network  replica.Network
	instance string

	mu    sync.Mutex
	used  map[string]int // since the last message, by client
	timer *time.Timer    // sends the next message; nil if none is due
}

// shareInterval is the time from a call to the message about it. A message follows at once when a
// client has used a part of its burst.
const shareInterval = 100 * time.Millisecond

// shareMessage is a message to all replicas.
type shareMessage struct {
	Kind     string         `json:"kind"` // shareKind
	Instance string         `json:"instance"`
	Used     map[string]int `json:"used"`
}

const shareKind = "rate-used"

func startSharing(l *Limiter) *sharing {
	s := &sharing{limiter: l, network: l.opts.Network, instance: "rate-" + rand.Text()[:10], used: map[string]int{}}
	_, _ = s.network.Receive(s.instance, s.receive) // after an error, this replica counts its own calls
	return s
}

// receive counts the calls of another replica. It implements [replica.Handler].
func (s *sharing) receive(_ context.Context, data []byte) ([]byte, error) {
	var m shareMessage
	if json.Unmarshal(data, &m) == nil && m.Kind == shareKind && m.Instance != s.instance {
		s.limiter.use(m.Used)
	}
	return nil, nil
}

// note remembers a call for the next message. It does nothing without replicas.
func (s *sharing) note(client string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[client]++
	switch isMuch := s.used[client] > s.limiter.opts.Burst/4; {
	case s.timer == nil && isMuch:
		s.timer = time.AfterFunc(0, s.send)
	case s.timer == nil:
		s.timer = time.AfterFunc(shareInterval, s.send)
	case isMuch:
		s.timer.Reset(0)
	}
}

// send tells the other replicas of the calls since the last message.
func (s *sharing) send() {
	s.mu.Lock()
	used := s.used
	s.used, s.timer = map[string]int{}, nil
	s.mu.Unlock()
	if len(used) == 0 {
		return
	}
	limit := xrate.Limit(s.limiter.opts.Rate)
	data, err := json.Marshal(shareMessage{shareKind, s.instance, used})
	if err == nil {
		err = s.network.SendAll(data)
	}
	if err != nil && s.limiter.opts.Replicas != nil {
		limit /= xrate.Limit(max(1, s.limiter.opts.Replicas()))
	}
	s.limiter.setLimit(limit)
}
