// Package work has the work that is measured, one file for each kind. Every answer is checked; an
// implementation that answers wrongly gets no figure.
package work

import (
	"context"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/bench/dowel"
	"github.com/dowel-mcp/dowel/bench/peers"
)

// Item is one piece of work. Its contestants, the implementations or variants that are compared, do
// it once in each round.
type Item struct {
	Name        string // unique, words with slashes between them
	Table       string // the title of its table
	Rows        []Row  // the compared figures
	Contestants []string
	Binaries    bool // needs the minimal servers of [Build]
	Measure     func(ctx context.Context, contestant string, o Options) (Result, error)
}

// Base returns the contestant that the others are compared with.
func (i Item) Base() string { return i.Contestants[0] }

// Ours returns the contestant that must keep the bounds: dowel, or the last one if all are dowel.
func (i Item) Ours() string { return i.Contestants[i.ours()] }

// Rivals returns the contestants that ours should be ahead of.
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

// Bound limits our figure. A zero field does not limit it.
type Bound struct {
	Base   float64 // our figure is at most this multiple of the base's
	Rivals float64 // the best rival's figure is at least this multiple of ours
}

// Figure is the name of a figure.
type Figure string

// The figures. Time, CPU, Allocs and Bytes are for one operation, of client and server together
// unless the table says otherwise. Size is for a binary, and the others are for one session.
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

// Result holds the measured figures.
type Result map[Figure]float64

// Options set the amount of work. Zero fields mean the defaults.
type Options struct {
	Time     time.Duration // how long an operation is repeated, default 300 ms
	Tools    int           // tools in a list, default 1,000
	Clients  int           // subscribed clients, default 1,000
	Sessions int           // idle sessions, default 2,000
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

// All returns all items, in the order of the tables.
func All() []Item {
	return slices.Concat(calls(), hops(), payloads(), lists(), fanOuts(), idles(), cpus(), starts(), gateways(), taskItems(), authorizations())
}

// contestants returns the names of all implementations. The floor is the first.
func contestants() (names []string) {
	for _, p := range peers.All {
		names = append(names, p.Name())
	}
	return names
}
