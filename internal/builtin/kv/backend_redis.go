package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultPrefix is the beginning of all names that a store uses in Redis.
const DefaultPrefix = "dowel:kv:"

// openWait bounds the time for opening the store, and for each operation in the background.
const openWait = 5 * time.Second

// Redis opens the store in the Redis, or Valkey, at a URL such as
// redis://user:password@host:6379/0, rediss:// with TLS or unix:///path/to/socket. Its names in
// Redis begin with prefix; the default is [DefaultPrefix]. All processes with the same database and
// prefix share one store and notify each other of changes. Redis needs no special configuration; a
// Redis cluster is not supported. Redis fails after 5 seconds if it gets no answer.
func Redis(ctx context.Context, address, prefix string) (Store, error) {
	opts, err := redis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("kv: the Redis URL cannot be used (want redis://user:password@host:port/db): %w", withoutURL(err))
	}
	if prefix == "" {
		prefix = DefaultPrefix
	}
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	r := &redisStore{client: redis.NewClient(opts), prefix: prefix, db: opts.DB}
	if err := r.client.Ping(ctx).Err(); err != nil {
		r.client.Close()
		return nil, fmt.Errorf("kv: no Redis answers at %s: check the address and the credentials, or omit redis= to store on disk: %w", opts.Addr, err)
	}
	r.sweeper = startSweeper(r.removeExpired)
	return r, nil
}

// withoutURL removes the URL from a parse error, because it may contain a password.
func withoutURL(err error) error {
	if parse, ok := errors.AsType[*url.Error](err); ok {
		return parse.Err
	}
	return err
}

// redisStore has three kinds of data in Redis. Each value has its own name and expires by itself. A
// sorted set has all keys with the same score, so Redis orders them by their bytes. Another sorted
// set has the keys that expire, with the time as the score; the sweeper uses it to announce that
// they have expired. Scripts keep the three consistent.
type redisStore struct {
	watcher
	client  *redis.Client
	prefix  string
	db      int
	sweeper *sweeper

	changes  *redis.PubSub
	listened chan struct{} // closed when the listening goroutine has ended; nil without a watch
}

func (r *redisStore) valueKey(key string) string { return r.prefix + "value:" + key }

// scriptKeys are the KEYS of every script.
func (r *redisStore) scriptKeys(key string) []string {
	return []string{r.valueKey(key), r.prefix + "keys", r.prefix + "expiries"}
}

// changeChannel returns the name of the channel for changes. Channels are shared by all databases,
// so the name includes the database.
func (r *redisStore) changeChannel() string { return r.prefix + "changes:" + strconv.Itoa(r.db) }

func (r *redisStore) Get(ctx context.Context, key string) (string, error) {
	value, err := r.client.Get(ctx, r.valueKey(key)).Result()
	if errors.Is(err, redis.Nil) {
		return "", fs.ErrNotExist
	}
	return value, redisError(err)
}

func (r *redisStore) Set(ctx context.Context, key, value string, ttl time.Duration) (created bool, err error) {
	n, err := setScript.Run(ctx, r.client, r.scriptKeys(key), key, value, ttl.Milliseconds(), r.changeChannel()).Int()
	return n == 1, redisError(err)
}

func (r *redisStore) Delete(ctx context.Context, key string) (existed bool, err error) {
	n, err := deleteScript.Run(ctx, r.client, r.scriptKeys(key), key, r.changeChannel()).Int()
	return n == 1, redisError(err)
}

func (r *redisStore) Keys(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	from := "(" + after
	if prefix > after {
		from = "[" + prefix
	} else if after == "" {
		from = "-"
	}
	keys, err := keysScript.Run(ctx, r.client, r.scriptKeys(""), from, endOfPrefix(prefix), limit).StringSlice()
	return keys, redisError(err)
}

// endOfPrefix returns the end of the range of keys that begin with prefix, in the syntax of
// ZRANGEBYLEX.
func endOfPrefix(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return "(" + prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return "+"
}

func (r *redisStore) Close() error {
	r.sweeper.stopSweeper()
	if r.changes != nil {
		r.changes.Close()
		<-r.listened
	}
	return r.client.Close()
}

// removeExpired removes the index entries of values that Redis has expired. All processes try; the
// first one to remove an entry announces the change.
func (r *redisStore) removeExpired() (next time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), openWait)
	defer cancel()
	for {
		left, err := sweepScript.Run(ctx, r.client, r.scriptKeys(""), r.changeChannel(), r.prefix+"value:", sweepBatch).Int64()
		if err != nil || left < 0 {
			return time.Time{}, redisError(err)
		}
		if left > 0 {
			return time.Now().Add(time.Duration(left) * time.Millisecond), nil
		}
	}
}

func redisError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("a request to Redis failed: %w", err)
}

// Watch implements [Store]. All changes come through Redis, also the changes by this process.
func (r *redisStore) Watch(f func(Change)) error {
	ctx, cancel := context.WithTimeout(context.Background(), openWait)
	defer cancel()
	r.changes = r.client.Subscribe(ctx, r.changeChannel())
	if _, err := r.changes.Receive(ctx); err != nil {
		r.changes.Close()
		r.changes = nil
		return fmt.Errorf("kv: cannot subscribe to changes in Redis: %w", err)
	}
	r.setCallback(f)
	r.listened = make(chan struct{})
	go r.reportMessages(r.changes.ChannelWithSubscriptions(redis.WithChannelSize(1000)))
	return nil
}

// reportMessages reports changes until the subscription is closed.
func (r *redisStore) reportMessages(events <-chan any) {
	defer close(r.listened)
	for event := range events {
		switch event := event.(type) {
		case *redis.Message:
			r.reportMessage(event.Payload)
		case *redis.Subscription: // the client has reconnected after a lost connection
			r.reportGap()
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
func (r *redisStore) reportGap() {
	r.reportChanges(Missed, "")
	ctx, cancel := context.WithTimeout(context.Background(), openWait)
	defer cancel()
	after := ""
	for {
		keys, err := r.Keys(ctx, "", after, sweepBatch)
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
