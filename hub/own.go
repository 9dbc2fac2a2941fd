package hub

import (
	"context"
	"fmt"
	"time"
)

// maxOwn bounds the connections that clients have of their own to one upstream.
const maxOwn = 64

// ownOf returns the connection of one client, and opens it where there is none yet.
func (u *Upstream) ownOf(ctx context.Context, key string) (*instance, error) {
	in, err := u.reserve(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-in.opened:
		return in, in.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// reserve returns the instance of a key, which is being opened where there was none.
func (u *Upstream) reserve(key string) (*instance, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	in := u.instances[key]
	switch {
	case u.main == nil:
		return nil, &DownError{u.name, u.state}
	case in != nil:
		return in, nil
	case len(u.instances) >= maxOwn && !u.dismiss():
		return nil, fmt.Errorf("%d clients have a process of %s of their own already: wait for one to leave", maxOwn, u.name)
	}
	in = newInstance()
	in.opened, in.left = make(chan struct{}), make(chan struct{})
	u.instances[key] = in
	down := u.changed
	u.own.Go(func() { u.openOwn(key, in, down) }) // it outlives the call that needs it first
	return in, nil
}

// dismiss ends the connection that has been idle longest, to make room; false where all are in use. u.mu is held.
func (u *Upstream) dismiss() bool {
	var oldest string
	var longest time.Duration
	for key, in := range u.instances {
		if idle := in.idle(); idle > longest {
			oldest, longest = key, idle
		}
	}
	in := u.instances[oldest]
	if in == nil {
		return false
	}
	delete(u.instances, oldest)
	in.leave()
	return true
}

// openOwn connects, and ends the connection when it is lost or idle, or the upstream is not ready any more.
func (u *Upstream) openOwn(key string, in *instance, down <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), u.patience())
	stop := make(chan struct{})
	go func() {
		select {
		case <-down:
		case <-stop:
		}
		cancel()
	}()
	opened, err := u.open(ctx)
	close(stop)
	if err != nil {
		in.err = &DownError{u.name, State{Status: Failed, Err: err, Cause: err.Error()}}
		u.forget(key, in)
		close(in.opened)
		return
	}
	in.mu.Lock()
	in.upstream, in.client, in.lost, in.used = u, opened.client, opened.lost, time.Now()
	in.mu.Unlock()
	close(in.opened)
	u.attendOwn(in, down)
	u.forget(key, in)
	in.replace()
	in.client.Close()
}

// attendOwn waits until the connection is of no use any more.
func (u *Upstream) attendOwn(in *instance, down <-chan struct{}) {
	idle := u.hub.opts.InstanceIdle
	look := time.NewTicker(max(idle/4, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-down:
			return
		case <-in.lost:
			return
		case <-in.left:
			return
		case <-look.C:
			if in.idle() >= idle {
				return
			}
		}
	}
}

func (u *Upstream) forget(key string, in *instance) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.instances[key] == in {
		delete(u.instances, key)
	}
}

// unused reports whether no client's own connection has been used for so long.
func (u *Upstream) unused(limit time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, in := range u.instances {
		if in.idle() < limit {
			return false
		}
	}
	return time.Since(u.used) >= limit
}
