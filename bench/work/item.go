// Package work is what the implementations are measured at: one file for each kind of work. Every answer that comes back is
// checked; an implementation that answers wrongly has no figure.
package work

import (
	"context"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/bench/dowel"
	"github.com/dowel-mcp/dowel/bench/peers"
)

// Item is one piece of work. All of its contestants do it once in each round.
type Item struct {
	Name        string // unique, words with slashes between them
	Table       string // the title of the table that it is in
	Rows        []Row  // what is compared
	Contestants []string
	Binaries    bool // it needs the minimal servers ([Build])
	Measure     func(ctx context.Context, contestant string, o Options) (Result, error)
}

// Base is the contestant that the others are compared with.
func (i Item) Base() string { return i.Contestants[0] }

// Ours is the contestant whose bounds are checked: dowel, or where all of them are dowel, the last.
func (i Item) Ours() string { return i.Contestants[i.ours()] }

// Rivals are the contestants that ours is to be ahead of.
func (i Item) Rivals() []string { return i.Contestants[i.ours()+1:] }

func (i Item) ours() int {
	if at := slices.Index(i.Contestants, dowel.Peer{}.Name()); at >= 0 {
		return at
	}
	return len(i.Contestants) - 1
}

// Row is a figure of an item that is compared.
type Row struct {
	Title string
	Figure
	Bound
}

// Bound is what our figure must keep; 0 is no bound.
type Bound struct {
	Base   float64 // it is at most this times the base's
	Rivals float64 // the best rival's is at least this times ours
}

// Figure is the name of a figure.
type Figure string

// The figures. Time is that of one operation; allocations, bytes and processor time are those of one operation, client and server
// together but where a table says otherwise; the others are those of one session, or of the binary.
const (
	Time       Figure = "ns"
	Allocs     Figure = "allocs"
	Bytes      Figure = "B"
	CPU        Figure = "ns CPU"
	InUse      Figure = "B in use"
	Resident   Figure = "B resident"
	Goroutines Figure = "goroutines"
	Size       Figure = "B on disk"
)

// Result is what was measured.
type Result map[Figure]float64

// Options say how much is done. The zero value is the documented default.
type Options struct {
	Time     time.Duration // how long an operation is repeated, default 300 ms
	Tools    int           // in lists, default 1,000
	Clients  int           // that hear of a change, default 1,000
	Sessions int           // that are idle, default 2,000
	Binaries string        // the folder with the minimal servers, for items that need them
}

func (o Options) withDefaults() Options {
	set := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	set(&o.Tools, 1000)
	set(&o.Clients, 1000)
	set(&o.Sessions, 2000)
	if o.Time == 0 {
		o.Time = 300 * time.Millisecond
	}
	return o
}

// All is all of the work, in the order of the tables.
func All() []Item {
	return slices.Concat(calls(), payloads(), lists(), fanOuts(), idles(), cpus(), starts(), gateways())
}

// everybody is the names of all implementations; the floor is the first.
func everybody() (names []string) {
	for _, p := range peers.All {
		names = append(names, p.Name())
	}
	return names
}
