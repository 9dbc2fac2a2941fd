package work

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/bench/dowel"
	"github.com/dowel-mcp/dowel/bench/floor"
	"github.com/dowel-mcp/dowel/bench/gosdk"
	"github.com/dowel-mcp/dowel/bench/jsonfloor"
	"github.com/dowel-mcp/dowel/bench/mcpgo"
	"github.com/dowel-mcp/dowel/bench/peer"
)

// hops measures dowel beside two stricter floors: one with a single goroutine hop per direction,
// and one without any. The server's processor time is compared with the floor of encoding/json.
func hops() (items []Item) {
	oneHop, direct := floor.OneHop{}.Name(), floor.Direct{}.Name()
	rivals := []string{dowel.Peer{}.Name(), gosdk.Peer{}.Name(), mcpgo.Peer{}.Name()}
	add := func(item Item, name, title string, contestants []string, figure Figure, bound Bound) {
		item.Name, item.Rows = "hop/"+name, []Row{{title, figure, bound}}
		item.Table = "Beside stricter floors: " + strings.Join(contestants, ", ") // a table has one set of contestants
		item.Contestants = append(contestants, rivals...)
		items = append(items, item)
	}
	for _, era := range []peer.Era{peer.Modern, peer.Legacy} {
		for _, width := range []int{1, 64} {
			c := call(memory, era, width)
			add(c, strings.TrimPrefix(c.Name, "call/"), fmt.Sprintf("a small call in memory, %s, %d in flight", era, width),
				[]string{oneHop, direct}, Time, Bound{Base: 1.6, Rivals: 4})
		}
	}
	for _, item := range slices.Concat(payloads(), lists(), fanOuts(), cpus()) {
		switch item.Name {
		case "payload/memory/1MiB":
			add(item, item.Name, "1 MiB echo in memory", []string{oneHop, direct}, Time, Bound{Base: 1.5, Rivals: 4})
		case "payload/pipes/1MiB":
			add(item, item.Name, "1 MiB echo over OS pipes", []string{oneHop}, Time, Bound{Base: 1.5, Rivals: 4})
		case "list/memory":
			add(item, item.Name, "`tools/list` of 1,000 tools, in memory", []string{oneHop, direct}, Time, Bound{Base: 1.3, Rivals: 4})
		case "fanout/memory":
			add(item, item.Name, "one change to 1,000 clients in memory", []string{oneHop}, Time, Bound{Base: 2.5})
		case "cpu/stdio/2026-07-28/1", "cpu/stdio/2025-11-25/1":
			add(item, item.Name, "processor time of the server, "+item.Rows[0].Title, []string{jsonfloor.Peer{}.Name()}, CPU, Bound{Base: 1.4, Rivals: 1})
		}
	}
	for _, era := range []peer.Era{peer.Modern, peer.Legacy} {
		items = append(items, hopFanOut(era, "list", false), hopFanOut(era, "resource", true))
	}
	return items
}

// hopFanOut is a change in each form that a client can subscribe to, for dowel and the floor alone:
// the rivals are measured with one form each.
func hopFanOut(era peer.Era, changed string, isUpdate bool) Item {
	return Item{
		Name:        fmt.Sprintf("hop/fanout/%s/%s", changed, era),
		Table:       "One change to 1,000 clients in memory, beside one hop",
		Rows:        []Row{{"of a " + changed + ", " + string(era), Time, Bound{Base: 2.5}}},
		Contestants: []string{floor.OneHop{}.Name(), dowel.Peer{}.Name()},
		Measure: func(ctx context.Context, contestant string, o Options) (Result, error) {
			return changeMemory(ctx, contestant, era, isUpdate, o)
		},
	}
}
