//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A usage describes the resources that a cluster uses at one time.
type usage struct {
	own, other float64 // resident bytes of the first replica, which has the clients, and of the last one
	nats       float64 // resident bytes
	disk       float64
	busy       time.Duration // processor time of all processes
}

// since returns what one of n things has added.
func (u usage) since(before usage, n float64) usage {
	return usage{(u.own - before.own) / n, (u.other - before.other) / n, (u.nats - before.nats) / n, (u.disk - before.disk) / n,
		time.Duration(float64(u.busy-before.busy) / n)}
}

// costs hold the usage that one thing adds, at the greatest size.
type costs struct {
	session, stream, listen, liveTask, storedTask usage
	replicas                                      []replicaCost
}

func (c *cluster) usage() (u usage, err error) {
	first, last := c.replicas[0], c.replicas[len(c.replicas)-1]
	var errs [4]error
	u.own, errs[0] = first.resident()
	u.other, errs[1] = last.resident()
	u.nats, errs[2] = c.nats.resident()
	u.disk, errs[3] = c.nats.stored()
	err = errors.Join(errs[:]...)
	for _, p := range append([]*process{c.nats.process}, processesOf(c.replicas)...) {
		busy, err2 := p.processorTime()
		u.busy, err = u.busy+busy, errors.Join(err, err2)
	}
	return u, err
}

func processesOf(replicas []*replica) (all []*process) {
	for _, r := range replicas {
		all = append(all, r.process)
	}
	return all
}

// A load adds things to the first replica of a cluster.
type load struct {
	title string
	sizes [3]int
	width int // how many are made at once
	add   func(ctx context.Context, r *replica, i int) (end func(), err error)
}

// measure measures a load at three sizes, each in a cluster of its own with two replicas.
func (l load) measure(ctx context.Context, s *setting, cost *usage) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "### %s\n\n", l.title)
	writeRow(&text, "how many", "memory of the replica", "of another replica", "of NATS", "disk of NATS", "processor time, all")
	text.WriteString(strings.Repeat("|---", 6) + "|\n")
	for _, size := range l.sizes {
		n := max(int(float64(size)*s.factor), 10)
		each, err := l.measureSize(ctx, s, n)
		if err != nil {
			return "", fmt.Errorf("%d: %w", n, err)
		}
		*cost = each
		writeRow(&text, fmt.Sprint(n), bytesText(each.own), bytesText(each.other), bytesText(each.nats), bytesText(each.disk), timeText(each.busy))
	}
	return text.String(), nil
}

func (l load) measureSize(ctx context.Context, s *setting, n int) (each usage, err error) {
	c, err := newCluster(ctx, s, 2, lessGarbage)
	if err != nil {
		return each, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var ends ends
	defer ends.run()
	add := func(i int) error {
		end, err := l.add(ctx, c.replicas[0], i)
		ends.add(end)
		return err
	}
	if err := spread(max(n/20, 2*l.width), l.width, add); err != nil { // so that connections and things made only once are not measured
		return each, err
	}
	before, err := c.settledUsage(ctx)
	if err != nil {
		return each, err
	}
	if err := spread(n, l.width, add); err != nil {
		return each, err
	}
	after, err := c.settledUsage(ctx)
	return after.since(before, float64(n)), err
}

func (c *cluster) settledUsage(ctx context.Context) (usage, error) {
	select {
	case <-time.After(c.s.times.settle):
	case <-ctx.Done():
	}
	return c.usage()
}

func measureSessions(ctx context.Context, s *setting) (string, error) {
	return load{title: "A session of 2025-11-25 without a stream", sizes: [3]int{1000, 10_000, 100_000}, width: 16,
		add: func(ctx context.Context, r *replica, i int) (func(), error) {
			_, err := r.openSession(ctx, i)
			return nil, err
		}}.measure(ctx, s, &s.costs.session)
}

func measureStreams(ctx context.Context, s *setting) (string, error) {
	return load{title: "A session of 2025-11-25 with an open GET", sizes: [3]int{500, 3000, 16_000}, width: 16,
		add: func(ctx context.Context, r *replica, i int) (func(), error) {
			id, err := r.openSession(ctx, i)
			if err != nil {
				return nil, err
			}
			return closing(r.request(ctx, i, http.MethodGet, "", legacyFields(id)...))
		}}.measure(ctx, s, &s.costs.stream)
}

func measureListens(ctx context.Context, s *setting) (string, error) {
	return load{title: "A `subscriptions/listen` of 2026-07-28", sizes: [3]int{500, 3000, 16_000}, width: 16,
		add: func(ctx context.Context, r *replica, i int) (func(), error) {
			return closing(r.request(ctx, i, http.MethodPost, listen, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"))
		}}.measure(ctx, s, &s.costs.listen)
}

// closing returns the function that closes an answer.
func closing(resp *http.Response, err error) (func(), error) {
	if err != nil {
		return nil, err
	}
	return func() { resp.Body.Close() }, nil
}

func measureLiveTasks(ctx context.Context, s *setting) (string, error) {
	return load{title: "A task that the gateway has made of a call that goes on", sizes: [3]int{250, 1000, 4000}, width: 16,
		add: func(ctx context.Context, r *replica, i int) (func(), error) {
			return nil, r.startTask(ctx, i, "work__wait")
		}}.measure(ctx, s, &s.costs.liveTask)
}

func measureStoredTasks(ctx context.Context, s *setting) (string, error) {
	return load{title: "A task that has ended and waits for its client", sizes: [3]int{1000, 10_000, 50_000}, width: 800,
		add: func(ctx context.Context, r *replica, i int) (func(), error) {
			return nil, r.startTask(ctx, i, "work__rest")
		}}.measure(ctx, s, &s.costs.storedTask)
}
