package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
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
	where, err := parseRedisURL(address)
	if err != nil {
		return nil, fmt.Errorf("kv: the Redis URL cannot be used (want redis://user:password@host:port/db): %w", err)
	}
	if prefix == "" {
		prefix = DefaultPrefix
	}
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	r := &redisStore{address: where, prefix: prefix}
	r.pool = redis.Pool{DialContext: r.address.dial, TestOnBorrowContext: r.testIdleConn, MaxIdle: maxRedisConns, MaxActive: maxRedisConns, Wait: true}
	if _, err := r.do(ctx, "PING"); err != nil {
		r.pool.Close()
		return nil, fmt.Errorf("kv: no Redis answers at %s: check the address and the credentials, or omit redis= to store on disk: %w", where.address, err)
	}
	r.sweeper = startSweeper(r.removeExpired)
	return r, nil
}

// maxRedisConns bounds the requests that run at a time.
const maxRedisConns = 20

// testIdleConn pings a connection that Redis, or its restart, may have closed.
func (r *redisStore) testIdleConn(ctx context.Context, conn redis.Conn, lastUsed time.Time) error {
	if time.Since(lastUsed) < time.Second && lastUsed.UnixNano() > r.watch.lostAt.Load() {
		return nil
	}
	_, err := redis.DoContext(conn, ctx, "PING")
	return err
}

// redisStore has three kinds of data in Redis. Each value has its own name and expires by itself. A
// sorted set has all keys with the same score, so Redis orders them by their bytes. Another sorted
// set has the keys that expire, with the time as the score; the sweeper uses it to announce that
// they have expired. Scripts keep the three consistent.
type redisStore struct {
	watcher
	address redisAddress
	pool    redis.Pool
	prefix  string
	sweeper *sweeper
	watch   redisWatch
}

// do sends a command and returns its reply.
func (r *redisStore) do(ctx context.Context, command string, args ...any) (any, error) {
	conn, err := r.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return redis.DoContext(conn, ctx, command, args...)
}

// runScript runs a script for a key and returns its reply.
func (r *redisStore) runScript(ctx context.Context, script *redis.Script, key string, args ...any) (any, error) {
	conn, err := r.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return script.DoContext(ctx, conn, append(r.scriptKeys(key), args...)...)
}

func (r *redisStore) valueKey(key string) string { return r.prefix + "value:" + key }

// scriptKeys are the KEYS of every script. There are scriptKeyCount of them.
func (r *redisStore) scriptKeys(key string) []any {
	return []any{r.valueKey(key), r.prefix + "keys", r.prefix + "expiries"}
}

// changeChannel returns the name of the channel for changes. Channels are shared by all databases,
// so the name includes the database.
func (r *redisStore) changeChannel() string {
	return r.prefix + "changes:" + strconv.Itoa(r.address.db)
}

func (r *redisStore) Get(ctx context.Context, key string) (string, error) {
	value, err := redis.String(r.do(ctx, "GET", r.valueKey(key)))
	if errors.Is(err, redis.ErrNil) {
		return "", fs.ErrNotExist
	}
	return value, redisError(err)
}

func (r *redisStore) Set(ctx context.Context, key, value string, ttl time.Duration) (created bool, err error) {
	n, err := redis.Int(r.runScript(ctx, setScript, key, key, value, ttl.Milliseconds(), r.changeChannel()))
	return n == 1, redisError(err)
}

func (r *redisStore) Delete(ctx context.Context, key string) (existed bool, err error) {
	n, err := redis.Int(r.runScript(ctx, deleteScript, key, key, r.changeChannel()))
	return n == 1, redisError(err)
}

func (r *redisStore) Keys(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	from := "(" + after
	if prefix > after {
		from = "[" + prefix
	} else if after == "" {
		from = "-"
	}
	keys, err := redis.Strings(r.runScript(ctx, keysScript, "", from, endOfPrefix(prefix), limit))
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
	r.watch.endWatch()
	return r.pool.Close()
}

// removeExpired removes the index entries of values that Redis has expired. All processes try; the
// first one to remove an entry announces the change.
func (r *redisStore) removeExpired() (next time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), openWait)
	defer cancel()
	for {
		left, err := redis.Int64(r.runScript(ctx, sweepScript, "", r.changeChannel(), r.prefix+"value:", sweepBatch))
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
