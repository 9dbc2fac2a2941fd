package work

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/bench/peers"
)

// fanOuts measures the time until all of many clients have received a change.
func fanOuts() []Item {
	const table = "One change, 1,000 clients, " + string(peer.Modern)
	return []Item{
		{
			Name: "fanout/memory", Table: table, Contestants: contestants(), Measure: fanOutMemory,
			Rows: []Row{{"clients in memory", Time, Bound{Base: 2.5, Rivals: 1}}},
		},
		{
			Name: "fanout/http", Table: table, Contestants: contestants(), Measure: fanOutHTTP,
			Rows: []Row{{"open streams over HTTP", Time, Bound{Base: 1.3, Rivals: 1}}},
		},
	}
}

func fanOutMemory(ctx context.Context, contestant string, o Options) (Result, error) {
	return changeMemory(ctx, contestant, peer.Modern, false, o)
}

// changeMemory measures one change for clients in memory: of a list, or of a resource if isUpdate
// is set.
func changeMemory(ctx context.Context, contestant string, era peer.Era, isUpdate bool, o Options) (Result, error) {
	p, err := peers.Named(contestant)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s, heard := p.NewServer(1), make(chan struct{}, o.Clients)
	var clients []peer.Session
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	for range o.Clients {
		c, err := p.Dial(ctx, peer.Target{Server: s, OnChange: func() { heard <- struct{}{} }, Updates: isUpdate}, era)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	change := s.Change
	if isUpdate {
		change = s.(peer.Updater).Update
	}
	return o.repeat(1, here, func() error {
		change()
		return count(heard, o.Clients)
	})
}

func count(heard <-chan struct{}, n int) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	for i := range n {
		select {
		case <-heard:
		case <-late.C:
			return fmt.Errorf("after %v only %d of %d clients have received a change", limit, i, n)
		}
	}
	return nil
}

func fanOutHTTP(_ context.Context, contestant string, o Options) (Result, error) {
	p, err := peers.Named(contestant)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := p.NewServer(1)
	h, err := s.Handler(peer.Modern, false)
	if err != nil {
		return nil, err
	}
	served := httptest.NewServer(h)
	defer served.Close()
	defer served.CloseClientConnections()
	streams, err := opened(o.Clients, func(int) (*events, error) { return listening(served.URL) })
	if err != nil {
		return nil, err
	}
	defer closeAll(streams)
	return o.repeat(1, here, func() error {
		s.Change()
		return nextOfEach(streams)
	})
}

// nextOfEach waits for an event on each stream.
func nextOfEach(streams []*events) error {
	const readers = 4
	var wg sync.WaitGroup
	errs := make([]error, readers)
	for part := range readers {
		wg.Go(func() {
			for i := part; i < len(streams) && errs[part] == nil; i += readers {
				errs[part] = streams[i].next()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
