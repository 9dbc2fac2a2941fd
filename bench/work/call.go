package work

import (
	"fmt"

	"github.com/dowel-mcp/dowel/bench/peer"
)

// calls measures a call with a small argument: over every wire, in both eras, one at a time and 64
// in flight.
func calls() (items []Item) {
	for _, era := range []peer.Era{peer.Modern, peer.Legacy} {
		for _, w := range []wire{memory, pipes, child, web, stream} {
			for _, width := range []int{1, 64} {
				items = append(items, call(w, era, width))
			}
		}
	}
	return items
}

func call(w wire, era peer.Era, width int) Item {
	flight := "one at a time"
	if width > 1 {
		flight = fmt.Sprintf("%d in flight", width)
	}
	return Item{
		Name:        fmt.Sprintf("call/%s/%s/%d", w.name, era, width),
		Table:       "A small call, " + string(era),
		Rows:        []Row{{w.title + ", " + flight, Time, callBound(w.name, era, width)}},
		Contestants: contestants(),
		Measure: connected(w, era, one, func(c *connection, o Options) (Result, error) {
			return o.repeat(width, c.used, c.echo("hello"))
		}),
	}
}

// callBound returns the bound of dowel's figure: the factors that the project promises.
func callBound(wire string, era peer.Era, width int) Bound {
	overHTTP := 3.0
	if era == peer.Legacy {
		overHTTP = 2
	}
	switch {
	case wire == memory.name && width == 1:
		return Bound{Base: 2, Rivals: 10}
	case wire == memory.name:
		return Bound{Rivals: 10}
	case wire == pipes.name && width == 1:
		return Bound{Base: 2.2, Rivals: 10}
	case wire == pipes.name:
		return Bound{Base: 2.5, Rivals: 10}
	case wire == child.name && width == 1:
		return Bound{Base: 1.4, Rivals: 1}
	case wire == child.name:
		return Bound{Rivals: 3}
	case wire == web.name && width == 1:
		return Bound{Base: 1.2, Rivals: overHTTP}
	case wire == web.name:
		return Bound{Base: 1.15, Rivals: overHTTP}
	}
	return Bound{Rivals: overHTTP}
}
