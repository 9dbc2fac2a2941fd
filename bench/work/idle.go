package work

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/bench/peers"
	"github.com/dowel-mcp/dowel/bench/side"
)

// idles measures the memory and goroutines that a server in a child process keeps for each idle
// session.
func idles() []Item {
	return []Item{
		idle("legacy", peer.Legacy, "session without a stream, 2025-11-25", Bound{Rivals: 1}, bareSession),
		idle("get", peer.Legacy, "session with an open GET, 2025-11-25", Bound{Base: 1.15, Rivals: 1}, getSession),
		idle("listen", peer.Modern, "`subscriptions/listen`, 2026-07-28", Bound{Base: 1.15, Rivals: 1}, listenSession),
	}
}

// idle returns an item. open opens one session, which lasts until the measurement ends.
func idle(name string, era peer.Era, title string, bound Bound, open func(*opener) error) Item {
	return Item{
		Name:  "idle/" + name,
		Table: "An idle client of 2,000: what the server's process holds for it",
		Rows: []Row{
			{title + ": heap and stacks", InUse, bound},
			{title + ": resident memory", Resident, Bound{}},
			{title + ": goroutines", Goroutines, Bound{}},
		},
		Contestants: contestants(),
		Measure: func(_ context.Context, contestant string, o Options) (Result, error) {
			return measureIdle(contestant, era, o.withDefaults().Sessions, open)
		},
	}
}

// opener opens sessions at a server.
type opener struct {
	url  string
	one  *raw // shared by sessions that need no connection of their own
	open []*events
}

func measureIdle(contestant string, era peer.Era, n int, open func(*opener) error) (r Result, err error) {
	p, err := peers.Named(contestant)
	if err != nil {
		return nil, err
	}
	server, err := side.New(side.Options{Peer: p, Era: era, HTTP: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	one, err := dialRaw(server.URL)
	if err != nil {
		return nil, err
	}
	defer one.Close()
	at := &opener{url: server.URL, one: one}
	defer func() { closeAll(at.open) }()
	if err := at.times(n/20+1, open); err != nil { // so that allocations made only once are not measured
		return nil, err
	}
	before, err1 := server.Used(true)
	err2 := at.times(n, open)
	after, err3 := server.Used(true)
	held, each := after.Since(before), float64(n)
	return Result{InUse: held.InUse / each, Resident: held.Resident / each, Goroutines: held.Routines / each}, errors.Join(err1, err2, err3)
}

func (o *opener) times(n int, open func(*opener) error) error {
	for i := range n {
		if err := open(o); err != nil {
			return fmt.Errorf("session %d: %w", i+1, err)
		}
	}
	return nil
}

func bareSession(o *opener) error {
	_, err := o.one.session()
	return err
}

func getSession(o *opener) error {
	id, err := o.one.session()
	if err != nil {
		return err
	}
	c, err := dialRaw(o.url)
	if err != nil {
		return err
	}
	e, err := c.stream(request(http.MethodGet, legacyFields(id), ""))
	if err != nil {
		c.Close()
		return err
	}
	o.open = append(o.open, e)
	return nil
}

func listenSession(o *opener) error {
	e, err := listening(o.url)
	if err == nil {
		o.open = append(o.open, e)
	}
	return err
}
