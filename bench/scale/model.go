//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// The size that the model describes.
const (
	modelReplicas = 1000
	modelSessions = 1_000_000
)

// describeModel extrapolates the costs. Costs of one thing grow with their number; the messages
// between idle replicas may grow with its square, so their power of growth is taken from the two
// greatest sizes.
func describeModel(_ context.Context, s *setting) (string, error) {
	c := s.costs
	if len(c.replicas) < 2 {
		return "### A thousand replicas and a million sessions\n\nNot computed: the replicas were not measured.\n", nil
	}
	small, large := c.replicas[len(c.replicas)-2], c.replicas[len(c.replicas)-1]
	var b strings.Builder
	b.WriteString("### A thousand replicas and a million sessions\n\n" +
		"What the tables above give for them. The sessions are those of 2025-11-25, without an open stream. Costs of things are\n" +
		"multiplied; those of idle replicas grow by the power that the two greatest sizes show.\n\n")
	writeRow(&b, "resource", "needed", "power of growth with replicas")
	b.WriteString(strings.Repeat("|---", 3) + "|\n")
	each := float64(modelSessions) / modelReplicas
	writeRow(&b, "memory of one replica", bytesText(large.resident+each*max(c.session.own, 0)), "")
	writeRow(&b, "memory of NATS", bytesText(large.nats+modelSessions*max(c.session.nats, 0)), "")
	writeRow(&b, "disk of NATS", bytesText(modelSessions*c.session.disk), "")
	writeRow(&b, "to open all sessions: processor time, all processes", timeText(c.session.busy*modelSessions), "")
	writeRow(&b, "connections of NATS", fmt.Sprintf("%.0f", (large.connections-small.connections)/(large.n-small.n)*modelReplicas), "1.0")
	for _, row := range []struct {
		name, format string
		of           func(replicaCost) float64
	}{
		{"idle: messages a second to NATS", "%.0f", func(r replicaCost) float64 { return r.in }},
		{"idle: messages a second from NATS", "%.0f", func(r replicaCost) float64 { return r.out }},
		{"idle: cores of NATS", "%.1f", func(r replicaCost) float64 { return r.busy }},
	} {
		if row.of(small) <= 0 || row.of(large) <= 0 {
			writeRow(&b, row.name, "too little to measure", "")
			continue
		}
		power := math.Log(row.of(large)/row.of(small)) / math.Log(large.n/small.n)
		writeRow(&b, row.name, fmt.Sprintf(row.format, row.of(large)*math.Pow(modelReplicas/large.n, power)), fmt.Sprintf("%.1f", power))
	}
	return b.String(), nil
}
