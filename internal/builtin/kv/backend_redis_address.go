package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// redisAddress is where a Redis listens, and how it knows its user.
type redisAddress struct {
	network, address   string
	username, password string
	isTLS              bool
	db                 int
}

// ignoredParameters tune other clients. URLs in configurations may have them.
var ignoredParameters = []string{
	"client_name", "conn_max_idle_time", "conn_max_lifetime", "dial_timeout", "max_idle_conns", "max_retries", "min_idle_conns",
	"pool_fifo", "pool_size", "pool_timeout", "protocol", "read_timeout", "write_timeout",
}

// parseRedisURL parses redis://user:password@host:port/db, rediss:// with TLS, and
// unix://user:password@/path/to/socket?db=1. A username alone is a password, as in redis-cli.
// Errors do not contain the URL, because it may contain a password.
func parseRedisURL(text string) (a redisAddress, err error) {
	u, err := url.Parse(text)
	if parse, ok := errors.AsType[*url.Error](err); ok {
		return a, parse.Err
	}
	if err != nil {
		return a, err
	}
	a.username = u.User.Username()
	if password, ok := u.User.Password(); ok {
		a.password = password
	} else {
		a.username, a.password = "", a.username
	}
	db := u.Query().Get("db")
	switch u.Scheme {
	case "redis", "rediss":
		a.network, a.isTLS = "tcp", u.Scheme == "rediss"
		a.address = net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), "6379"))
		db = cmp.Or(strings.Trim(u.Path, "/"), db)
	case "unix":
		if u.Path == "" {
			return a, errors.New("a unix URL names no socket: want unix:///path/to/socket")
		}
		a.network, a.address = "unix", u.Path
	default:
		return a, fmt.Errorf("unknown scheme %q: want redis, rediss or unix", u.Scheme)
	}
	for name := range u.Query() {
		switch {
		case slices.Contains(ignoredParameters, name):
			slog.Warn("kv: a parameter of the Redis URL has no effect", "parameter", name)
		case name != "db":
			return a, fmt.Errorf("unknown parameter %q: only db is supported", name)
		}
	}
	if db == "" {
		return a, nil
	}
	if a.db, err = strconv.Atoi(db); err != nil || a.db < 0 {
		return a, fmt.Errorf("the database %q is not a number", db)
	}
	return a, nil
}

// dial connects within openWait. On the connection, an answer that takes longer than openWait is an
// error.
func (a *redisAddress) dial(ctx context.Context) (redis.Conn, error) {
	return redis.DialContext(ctx, a.network, a.address,
		redis.DialConnectTimeout(openWait), redis.DialReadTimeout(openWait), redis.DialWriteTimeout(openWait),
		redis.DialUsername(a.username), redis.DialPassword(a.password), redis.DialDatabase(a.db), redis.DialUseTLS(a.isTLS))
}
