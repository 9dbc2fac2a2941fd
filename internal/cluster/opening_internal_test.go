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

// unknownStream is the answer of a JetStream that does not know a stream.
func unknownStream() error {
	return &jetstream.APIError{Code: 404, ErrorCode: jetstream.JSErrCodeStreamNotFound, Description: "stream not found"}
}

// A stream that JetStream does not know for a moment is used as soon as it is known.
func TestAwaitStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tries, refusal := 0, errors.New("no room")
		use := func() (int, error) {
			if tries++; tries < 4 {
				return 0, unknownStream()
			}
			return tries, nil
		}
		if n, err := awaitStream(ctx, use); n != 4 || err != nil {
			t.Errorf("try %d: %v", n, err)
		}
		if _, err := awaitStream(ctx, func() (int, error) { return 0, refusal }); err != refusal {
			t.Errorf("another error is %v", err)
		}
		if _, err := awaitStream(ctx, func() (int, error) { return 0, unknownStream() }); !errors.Is(err, jetstream.ErrStreamNotFound) || ctx.Err() == nil {
			t.Errorf("an unknown stream: %v", err)
		}
	})
}

// An unknown stream means that the store cannot be reached: callers ask again later.
func TestUnknownStreamIsUnreachable(t *testing.T) {
	if err := storeError(unknownStream()); !errors.Is(err, replica.ErrUnreachable) {
		t.Error(err)
	}
}
