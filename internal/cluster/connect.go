package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// SplitURL returns the URLs of the NATS servers and the name of the cluster.
func SplitURL(text string) (servers []string, name string, err error) {
	name = "dowel"
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return nil, "", errors.New("the address of the cluster is not valid: want nats://HOST:PORT/NAME or tls://HOST:PORT/NAME, several of them with commas between")
		}
		if path := strings.Trim(u.Path, "/"); path != "" {
			name = path
		}
		u.Path = ""
		servers = append(servers, u.String())
	}
	if !clusterName().MatchString(name) {
		return nil, "", fmt.Errorf("the name %q of the cluster is not valid: want up to 40 letters, digits, - and _", name)
	}
	return servers, name, nil
}

// A connection on which nothing arrives is replaced within the life of a lease, after one more
// interval than pings may be unanswered.
const (
	pingInterval = 2 * time.Second
	maxPings     = 2
)

// connect connects to a NATS server. Later losses of the connection are healed in the background.
func (c *Cluster) connect() error {
	servers, name, err := SplitURL(c.opts.URL)
	if err != nil {
		return err
	}
	c.name = name
	options := []nats.Option{
		nats.Name("dowel " + name), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.Timeout(3 * time.Second),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings),
		nats.ReconnectBufSize(-1), // what cannot be sent fails at once
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.noteDisconnected()
			if c.ctx.Err() == nil {
				c.opts.Logger.Warn("the connection to the cluster is lost: until it is back, requests of sessions fail, and after a few seconds calls of servers that one replica runs for all", "cluster", name, "err", err)
			}
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) {
			c.opts.Logger.Info("the cluster is reached again", "cluster", name, "server", conn.ConnectedUrlRedacted())
			c.renewAfterLoss()
			c.callHealed()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if isSyncRefusal(err) {
				return
			}
			c.opts.Logger.Warn("the cluster reports a problem", "cluster", name, "err", err)
		}),
	}
	if c.opts.Credentials != "" {
		options = append(options, nats.UserCredentials(c.opts.Credentials))
	}
	c.conn, err = nats.Connect(strings.Join(servers, ","), options...)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return credentialsError(redact(servers), err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the credentials of the cluster cannot be read: %w: want a file that nsc or nk has made", err)
	case err != nil:
		return fmt.Errorf("the cluster %s cannot be reached: %w: start a NATS server there, or check the address", redact(servers), err)
	}
	c.js, err = jetstream.New(c.conn, jetstream.WithDefaultTimeout(storeTimeout), jetstream.WithPublishAsyncTimeout(storeTimeout), jetstream.WithPublishAsyncMaxPending(2*maxBatchLines))
	return err
}

// credentialsError reports that a server has refused the credentials.
func credentialsError(where string, err error) error {
	return fmt.Errorf("the cluster %s refuses these credentials: %w: check the user and the password in the URL, or the file with the credentials", where, err)
}

// redact returns the addresses without passwords.
func redact(servers []string) string {
	var shown []string
	for _, s := range servers {
		if u, err := url.Parse(s); err == nil {
			shown = append(shown, u.Redacted())
		}
	}
	return strings.Join(shown, ", ")
}

// OnReconnect calls f after each time when the connection is there again, or JetStream answers
// again, until forget is called.
func (c *Cluster) OnReconnect(f func()) (forget func()) {
	return c.addHook(&c.healed, f)
}

// hooks are functions that the cluster calls until they are forgotten. Its lock guards them.
type hooks map[int]func()

// addHook adds a hook, and returns the function that forgets it.
func (c *Cluster) addHook(all *hooks, f func()) (forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextHook
	c.nextHook++
	if *all == nil {
		*all = hooks{}
	}
	(*all)[id] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(*all, id)
	}
}

// callHealed calls the functions of OnReconnect.
func (c *Cluster) callHealed() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.healed))
	c.mu.Unlock()
	for _, f := range all {
		f()
	}
}
