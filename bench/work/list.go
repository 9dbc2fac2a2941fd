package work

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/bench/peers"
)

const listTable = "A server with 1,000 tools, " + string(peer.Modern)

// lists measures how a client lists and decodes many tools, and how a server registers them.
func lists() []Item {
	return []Item{
		list(memory, Bound{Base: 1.3, Rivals: 10}),
		list(web, Bound{Rivals: 10}),
		{
			Name:        "list/register",
			Table:       listTable,
			Rows:        []Row{{"registering them", Time, Bound{Rivals: 1}}},
			Contestants: contestants(),
			Measure:     register,
		},
		{
			Name:        "list/register/types",
			Table:       listTable,
			Rows:        []Row{{"registering them, each with a type of its own", Time, Bound{Rivals: 1}}},
			Contestants: contestants(),
			Measure:     registerTypes,
		},
	}
}

func list(w wire, bound Bound) Item {
	return Item{
		Name:        "list/" + w.name,
		Table:       listTable,
		Rows:        []Row{{"listing them, " + w.title, Time, bound}},
		Contestants: contestants(),
		Measure: connected(w, peer.Modern, func(o Options) int { return o.Tools }, func(c *connection, o Options) (Result, error) {
			return o.repeat(1, c.used, func() error {
				n, err := c.List(context.Background())
				if err == nil && n != o.Tools {
					err = fmt.Errorf("listed %d tools, want %d", n, o.Tools)
				}
				return err
			})
		}),
	}
}

func register(_ context.Context, contestant string, o Options) (Result, error) {
	p, err := peers.Named(contestant)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return o.repeat(1, here, func() error {
		made = p.NewServer(o.Tools)
		return nil
	})
}

// registerTypes measures how 1,000 tools of different Go types are registered for the first time. A
// floor has finished descriptions, whatever the types.
func registerTypes(_ context.Context, contestant string, o Options) (Result, error) {
	p, err := peers.Named(contestant)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return once(func() error {
		if typed, ok := p.(peer.Typed); ok {
			made = typed.NewTypedServer()
		} else {
			made = p.NewServer(o.Tools)
		}
		return nil
	})
}

// made holds the result, so that the compiler cannot remove the measured work.
var made peer.Server
