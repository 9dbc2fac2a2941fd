package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// How long a replica that opens a stream waits for the answer to one request before it sends the
// request again. While JetStream elects a leader, nothing answers, and the new leader does not know
// the requests of before.
const (
	openTry   = time.Second
	createTry = 5 * time.Second // a new stream has an election of its own
	openPause = 100 * time.Millisecond
)

// tryAgain sends a request that may be repeated, again until it is answered or ctx ends.
func tryAgain[T any](ctx context.Context, c *Cluster, limit time.Duration, request func(context.Context) (T, error)) (T, error) {
	return repeatWhile(ctx, c.awaitsLeader, func() (T, error) {
		try, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return request(try)
	})
}

// repeatWhile calls use until its error is nil or none that may go away, or until ctx ends.
func repeatWhile[T any](ctx context.Context, mayGoAway func(error) bool, use func() (T, error)) (T, error) {
	for {
		result, err := use()
		if err == nil || !mayGoAway(err) || timeout.Sleep(ctx, openPause) != nil {
			return result, err
		}
	}
}

// awaitStream uses a stream that exists, again until JetStream knows the stream or ctx ends: after
// a change of its leader, it may not know a new stream for a moment.
func awaitStream[T any](ctx context.Context, use func() (T, error)) (T, error) {
	return repeatWhile(ctx, isUnknownStream, use)
}

// isUnknownStream reports whether JetStream does not know a stream, or the stream of a bucket.
func isUnknownStream(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound)
}

// awaitsLeader reports whether another try may succeed soon, because nothing has answered. After
// [Open], an answer that JetStream is not available ends the operation at once.
func (c *Cluster) awaitsLeader(err error) bool {
	api, isAnswer := errors.AsType[*jetstream.APIError](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		isAnswer && api.ErrorCode == errUnavailable && !c.isOpen.Load()
}
