package work

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/bench/peer"
)

// payloads is a call with a large argument, which comes back.
func payloads() (items []Item) {
	for _, w := range []wire{memory, pipes, child, web} {
		for _, size := range []struct {
			name  string
			bytes int
			Bound
		}{{"64 KiB", 64 << 10, Bound{Rivals: 1}}, {"1 MiB", 1 << 20, Bound{Base: 1.6, Rivals: 10}}} {
			if w.name == web.name && size.Rivals > 1 {
				size.Rivals = 3
			}
			if w.name == child.name {
				size.Bound = Bound{Rivals: 1}
			}
			const text = "All work and no play. "
			message := strings.Repeat(text, size.bytes/len(text))
			items = append(items, Item{
				Name:        fmt.Sprintf("payload/%s/%s", w.name, strings.ReplaceAll(size.name, " ", "")),
				Table:       "A call with a large argument, which comes back, " + string(peer.Modern),
				Rows:        []Row{{w.title + ", " + size.name, Time, size.Bound}},
				Contestants: contestants(),
				Measure: connected(w, peer.Modern, one, func(c *connection, o Options) (Result, error) {
					return o.repeat(1, c.used, c.echo(message))
				}),
			})
		}
	}
	return items
}
