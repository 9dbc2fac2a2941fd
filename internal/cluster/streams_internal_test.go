package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/nats-io/nats.go/jetstream"
)

// The stream with the fewest copies decides whether there is redundancy.
func TestFewestCopies(t *testing.T) {
	c := new(Cluster)
	for _, copies := range []int{3, 1, 3} {
		c.noteStream(copies, false)
	}
	if c.copies != 1 {
		t.Errorf("%d copies", c.copies)
	}
}

// A connection that hangs is noticed before other replicas take over.
func TestPings(t *testing.T) {
	if after := (maxPings + 1) * pingInterval; after > replica.LeaseLife {
		t.Errorf("a connection that hangs is noticed after %v, and a lease ends after %v", after, replica.LeaseLife)
	}
}

// racedStreams has a stream that another replica creates: for a while it has its name, and cannot
// be found.
type racedStreams struct {
	jetstream.JetStream
	misses int
}

type racedStream struct{ jetstream.Stream }

func (racedStream) CachedInfo() *jetstream.StreamInfo { return new(jetstream.StreamInfo) }

func (s *racedStreams) Stream(context.Context, string) (jetstream.Stream, error) {
	if s.misses > 0 {
		s.misses--
		return nil, jetstream.ErrStreamNotFound
	}
	return racedStream{}, nil
}

func (*racedStreams) CreateStream(context.Context, jetstream.StreamConfig) (jetstream.Stream, error) {
	return nil, jetstream.ErrStreamNameAlreadyInUse
}

// A replica waits for a stream that another one creates at the same time.
func TestStreamOfFasterReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{js: &racedStreams{misses: 3}}
		if stream, err := c.openStream(t.Context(), jetstream.StreamConfig{Name: "s"}); stream == nil || err != nil {
			t.Errorf("%v, %v", stream, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.js = &racedStreams{misses: 1 << 20}
		if _, err := c.openStream(ctx, jetstream.StreamConfig{Name: "s"}); !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			t.Error(err)
		}
	})
}

// A renewal that is stored and does not come back shows that the watch of the leases is lost.
func TestMissingRenewal(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name          string
		renewed, seen time.Duration // before now
		leaseErr      error
		isMissing     bool
	}{
		{"it has come back", 2 * time.Second, 1900 * time.Millisecond, nil, false},
		{"it has just been stored", 100 * time.Millisecond, 2 * time.Second, nil, false},
		{"it is missing", 2 * time.Second, 4 * time.Second, nil, true},
		{"it could not be stored", 2 * time.Second, 4 * time.Second, errors.New("no leader"), false},
	} {
		one := &Cluster{id: "one", renewed: now.Add(-c.renewed), leaseErr: c.leaseErr, members: map[string]member{"one": {seen: now.Add(-c.seen)}}}
		if one.missesRenewal() != c.isMissing {
			t.Errorf("%s: missing is %v", c.name, !c.isMissing)
		}
	}
}
