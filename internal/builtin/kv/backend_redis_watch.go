package kv

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/gomodule/redigo/redis"
)

// A subscription is pinged, so that a connection that was lost without a sign is noticed.
const (
	redisPingInterval = 15 * time.Second
	redisSilenceLimit = 4 * redisPingInterval

	firstResubscribePause   = 100 * time.Millisecond
	longestResubscribePause = 10 * time.Second
)

// redisWatch is the goroutine that listens to changes. The zero value is no watch.
type redisWatch struct {
	end    context.CancelFunc
	ended  sync.WaitGroup
	lostAt atomic.Int64 // when the last connection was lost, in Unix nanoseconds
}

// endWatch ends the watch, and waits for a running callback.
func (w *redisWatch) endWatch() {
	if w.end != nil {
		w.end()
		w.ended.Wait()
	}
}

// Watch implements [Store]. All changes come through Redis, also the changes by this process.
func (r *redisStore) Watch(f func(Change)) error {
	ctx, cancel := context.WithTimeout(context.Background(), openWait)
	defer cancel()
	subscription, err := r.subscribe(ctx)
	if err != nil {
		return fmt.Errorf("kv: cannot subscribe to changes in Redis: %w", err)
	}
	r.setCallback(f)
	life, end := context.WithCancel(context.Background())
	r.watch.end = end
	r.watch.ended.Go(func() { r.listen(life, subscription) })
	return nil
}

// subscribe makes a connection that gets the changes.
func (r *redisStore) subscribe(ctx context.Context) (redis.PubSubConn, error) {
	conn, err := r.address.dial(ctx)
	if err != nil {
		return redis.PubSubConn{}, err
	}
	s := redis.PubSubConn{Conn: conn}
	if err = s.Subscribe(r.changeChannel()); err == nil {
		err, _ = s.ReceiveContext(ctx).(error)
	}
	if err != nil {
		s.Close()
	}
	return s, err
}

// listen reports changes until ctx ends. It replaces a connection that is lost.
func (r *redisStore) listen(ctx context.Context, s redis.PubSubConn) {
	for {
		r.reportMessages(ctx, s)
		r.watch.lostAt.Store(time.Now().UnixNano())
		var ok bool
		if s, ok = r.resubscribe(ctx); !ok {
			return
		}
		r.reportGap(ctx)
	}
}

// resubscribe makes a new connection. It reports false when ctx has ended.
func (r *redisStore) resubscribe(ctx context.Context) (s redis.PubSubConn, ok bool) {
	for pause := firstResubscribePause; ; pause = min(2*pause, longestResubscribePause) {
		if timeout.Sleep(ctx, pause) != nil {
			return s, false
		}
		attempt, cancel := context.WithTimeout(ctx, openWait)
		s, err := r.subscribe(attempt)
		cancel()
		if err == nil {
			return s, true
		}
	}
}

// reportMessages reports the changes that a connection gets, and closes the connection at its end.
func (r *redisStore) reportMessages(ctx context.Context, s redis.PubSubConn) {
	ctx, cancel := context.WithCancel(ctx)
	var pings sync.WaitGroup
	pings.Go(func() { pingUntil(ctx, s) })
	defer pings.Wait()
	defer cancel()
	for {
		switch event := s.ReceiveWithTimeout(redisSilenceLimit).(type) {
		case error:
			return
		case redis.Message:
			r.reportMessage(string(event.Data))
		}
	}
}

// pingUntil sends pings until ctx ends or one cannot be sent, and closes the connection then, which
// ends a Receive.
func pingUntil(ctx context.Context, s redis.PubSubConn) {
	defer s.Close()
	ticker := time.NewTicker(redisPingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if s.Ping("") != nil {
				return
			}
		}
	}
}

// reportMessage reports a change that a script has published: +, = or -, and the key.
func (r *redisStore) reportMessage(message string) {
	if message == "" {
		return
	}
	kinds := map[byte]ChangeKind{'+': Created, '=': Replaced, '-': Removed}
	if kind, ok := kinds[message[0]]; ok {
		r.reportChanges(kind, message[1:])
	}
	if message[0] != '-' {
		r.sweeper.wakeUp() // the key may be the next to expire
	}
}

// reportGap reports that changes may have been missed, and then each existing key as replaced.
func (r *redisStore) reportGap(ctx context.Context) {
	r.reportChanges(Missed, "")
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	after := ""
	for {
		keys, err := r.Keys(ctx, "", after, sweepBatch)
		if ctx.Err() == context.Canceled {
			return
		}
		if err != nil {
			slog.Warn("kv: the connection to Redis was lost, and its keys cannot be listed now", "err", err)
			return
		}
		if len(keys) == 0 {
			return
		}
		r.reportChanges(Replaced, keys...)
		after = keys[len(keys)-1]
	}
}
