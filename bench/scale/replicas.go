//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// replicaCost describes the resources of replicas that do nothing.
type replicaCost struct {
	n                 float64
	resident          float64 // bytes of one replica
	nats              float64 // resident bytes
	connections       float64 // of NATS
	in, out           float64 // messages a second of NATS
	replicaBusy, busy float64 // processor time in cores: of one replica, of NATS
}

func measureReplicas(ctx context.Context, s *setting) (string, error) {
	var text strings.Builder
	text.WriteString("### A replica that does nothing\n\n")
	writeRow(&text, "replicas", "memory of each", "memory of NATS", "connections of NATS", "messages a second to NATS", "from NATS",
		"a replica's share of a core", "NATS")
	text.WriteString(strings.Repeat("|---", 8) + "|\n")
	for _, n := range []int{1, 4, 16} {
		c, err := measureIdle(ctx, s, n)
		if err != nil {
			return "", fmt.Errorf("%d: %w", n, err)
		}
		s.costs.replicas = append(s.costs.replicas, c)
		writeRow(&text, fmt.Sprint(n), bytesText(c.resident), bytesText(c.nats), fmt.Sprintf("%.0f", c.connections),
			fmt.Sprintf("%.1f", c.in), fmt.Sprintf("%.1f", c.out), fmt.Sprintf("%.2f %%", 100*c.replicaBusy), fmt.Sprintf("%.2f %%", 100*c.busy))
	}
	return text.String(), nil
}

// writeRow writes a row of a table.
func writeRow(text *strings.Builder, cells ...string) {
	text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// An idleSample is a look at an idle cluster.
type idleSample struct {
	usage
	natsCounts
	natsBusy time.Duration // processor time of NATS
}

func (c *cluster) sampleIdle() (s idleSample, err error) {
	var errs [3]error
	s.usage, errs[0] = c.usage()
	s.natsCounts, errs[1] = c.nats.counts()
	s.natsBusy, errs[2] = c.nats.processorTime()
	return s, errors.Join(errs[:]...)
}

func measureIdle(ctx context.Context, s *setting, n int) (r replicaCost, err error) {
	c, err := newCluster(ctx, s, n, lessGarbage)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, err := c.settledUsage(ctx); err != nil {
		return r, err
	}
	before, err1 := c.sampleIdle()
	select {
	case <-time.After(s.times.idle):
	case <-ctx.Done():
	}
	after, err2 := c.sampleIdle()
	seconds := s.times.idle.Seconds()
	natsBusy := after.natsBusy - before.natsBusy
	return replicaCost{
		n: float64(n), resident: after.own, nats: after.nats, connections: after.Connections,
		in: (after.In - before.In) / seconds, out: (after.Out - before.Out) / seconds,
		busy: natsBusy.Seconds() / seconds, replicaBusy: (after.usage.busy - before.usage.busy - natsBusy).Seconds() / seconds / float64(n),
	}, errors.Join(err1, err2)
}
