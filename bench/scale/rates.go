//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// callers is how many calls are in flight. At replicas with a quarter of a core there are crowd:
// such a process works for a few milliseconds and then rests for the rest of a period, so each
// needs enough calls to fill its share.
const (
	callers = 32
	crowd   = 128
)

// A caller makes one call at a replica. number tells the calls apart that are in flight.
type caller func(ctx context.Context, r *replica, number int) error

// callsOf returns the calls that are measured, by their revision. In 2025-11-25, each call in
// flight has a session of its own, which it uses at all replicas in turn: the clients of a load
// balancer that knows no sessions.
func callsOf(ctx context.Context, replicas []*replica) (map[string]caller, error) {
	sessions := make([]string, crowd)
	err := spread(crowd, callers, func(i int) (err error) {
		sessions[i], err = replicas[i%len(replicas)].openSession(ctx, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	var ids atomic.Int64 // a session has each id once
	return map[string]caller{
		"2026-07-28": callEcho,
		"2025-11-25": func(ctx context.Context, r *replica, number int) error {
			call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work__echo","arguments":{}}}`, 1+ids.Add(1))
			_, text, err := r.exchange(ctx, 0, call, legacyFields(sessions[number])...)
			return checkEcho(text, err)
		},
	}, nil
}

func callEcho(ctx context.Context, r *replica, _ int) error { return r.echo(ctx) }

// rate measures a call, inFlight of them at a time, and returns the calls a second, and the
// processor time of the replicas for each call.
func (s *setting) rate(ctx context.Context, replicas []*replica, call caller, inFlight int) (perSecond float64, busy time.Duration, err error) {
	before, err := totalTime(replicas)
	if err != nil {
		return 0, 0, err
	}
	begun, counts := time.Now(), make([]int, inFlight)
	err = spread(inFlight, inFlight, func(i int) error {
		for j := i; time.Since(begun) < s.times.rate; j++ {
			if err := call(ctx, replicas[j%len(replicas)], i); err != nil {
				return err
			}
			counts[i]++
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	after, err := totalTime(replicas)
	calls := 0
	for _, n := range counts {
		calls += n
	}
	return float64(calls) / time.Since(begun).Seconds(), (after - before) / time.Duration(calls), err
}

func totalTime(replicas []*replica) (total time.Duration, err error) {
	for _, r := range replicas {
		busy, err := r.processorTime()
		if err != nil {
			return 0, err
		}
		total += busy
	}
	return total, nil
}

// measureClusterCost compares a call that needs no shared state with and without a cluster.
func measureClusterCost(ctx context.Context, s *setting) (text string, err error) {
	c, err := newCluster(ctx, s, 1)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	upstream := httptest.NewServer(newWork())
	defer upstream.Close()
	alone, err := startReplica(ctx, s, upstream.URL, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, alone.stop()) }()
	var rates, times []float64
	both := [2][]*replica{c.replicas, {alone}}
	for i := range s.times.many {
		var perSecond [2]float64
		var busy [2]time.Duration
		for _, j := range []int{i % 2, 1 - i%2} { // each is first in every second round
			if perSecond[j], busy[j], err = s.rate(ctx, both[j], callEcho, callers); err != nil {
				return "", err
			}
		}
		rates = append(rates, perSecond[0]/perSecond[1])
		times = append(times, float64(busy[0])/float64(busy[1]))
	}
	return fmt.Sprintf("### A call with `--cluster` beside one without\n\nA call of 2026-07-28, %d in flight, %d rounds of both in turn: %s × the calls a second, %s × the "+
		"processor time of dowel.\n", callers, len(rates), spreadText(rates), spreadText(times)), nil
}

// spreadText writes the median and the range.
func spreadText(all []float64) string {
	slices.Sort(all)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", all[len(all)/2], all[0], all[len(all)-1])
}

// measureQuarters compares one replica with three of them, if each may use a quarter of a core.
func measureQuarters(ctx context.Context, s *setting) (text string, err error) {
	const title = "### Replicas with a quarter of a core each\n\n"
	c, err := newCluster(ctx, s, 3)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for _, r := range c.replicas {
		end, err := limitToQuarter(r.process)
		if err != nil {
			return title + "Not measured: this process may not limit the processor time of others (" + err.Error() + ").\n", nil
		}
		defer end()
	}
	calls, err := callsOf(ctx, c.replicas)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d calls in flight, in 2025-11-25 each with a session of its own; %d rounds of both in turn.\n\n", title, crowd, s.times.rounds)
	b.WriteString("| call | one | three | three beside one |\n|---|---|---|---|\n")
	for _, era := range []string{"2026-07-28", "2025-11-25"} {
		var one, three, ratios []float64
		for range s.times.rounds {
			single, _, err1 := s.rate(ctx, c.replicas[:1], calls[era], crowd)
			all, _, err2 := s.rate(ctx, c.replicas, calls[era], crowd)
			if err := errors.Join(err1, err2); err != nil {
				return "", err
			}
			one, three, ratios = append(one, single), append(three, all), append(ratios, all/single)
		}
		slices.Sort(one)
		slices.Sort(three)
		fmt.Fprintf(&b, "| %s | %.0f a second | %.0f a second | %s × |\n", era, one[len(one)/2], three[len(three)/2], spreadText(ratios))
	}
	return b.String(), nil
}

// limitToQuarter limits a process to a quarter of a core, by a control group of its own.
func limitToQuarter(p *process) (end func(), err error) {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	const v1, v2 = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
	if _, err := os.Stat(v1); err == nil {
		return makeGroup(filepath.Join(v1, "dowel-scale-"+pid), pid, [][2]string{{"cpu.cfs_period_us", "20000"}, {"cpu.cfs_quota_us", "5000"}}, v1)
	}
	return makeGroup(filepath.Join(v2, "dowel-scale-"+pid), pid, [][2]string{{"cpu.max", "5000 20000"}}, v2)
}

func makeGroup(folder, pid string, limits [][2]string, parent string) (end func(), err error) {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	end = func() {
		_ = os.WriteFile(filepath.Join(parent, "cgroup.procs"), []byte(pid), 0o644)
		_ = os.Remove(folder)
	}
	for _, limit := range append(limits, [2]string{"cgroup.procs", pid}) {
		if err := os.WriteFile(filepath.Join(folder, limit[0]), []byte(limit[1]), 0o644); err != nil {
			end()
			return nil, err
		}
	}
	return end, nil
}
