package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/bench/side"
)

// TestMain is also the server in a process of its own that the work starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == side.Command {
		if err := side.Serve(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// unable has the items that a peer cannot do. The test also fails if the peer can do one of them.
var unable = map[string]bool{
	"call/stream/2026-07-28/1 mcp-go": true, "call/stream/2026-07-28/64 mcp-go": true,
	"call/stream/2025-11-25/1 mcp-go": true, "call/stream/2025-11-25/64 mcp-go": true,
}

func TestEveryoneDoesEverything(t *testing.T) {
	o := Options{Time: time.Millisecond, Tools: 20, Clients: 10, Sessions: 5, Binaries: t.TempDir()}
	if err := Build(t.Context(), o.Binaries); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, item := range All() {
		if names[item.Name] {
			t.Errorf("there are two %s", item.Name)
		}
		names[item.Name] = true
		for _, contestant := range item.Contestants {
			t.Run(item.Name+" "+contestant, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				got, err := item.Measure(ctx, contestant, o)
				reason := peer.Unable("")
				if want := unable[item.Name+" "+contestant]; errors.As(err, &reason) != want {
					t.Fatalf("%v; want it to be unable: %v", err, want)
				}
				if err != nil {
					if reason == "" {
						t.Fatal(err)
					}
					return
				}
				for _, row := range item.Rows {
					value, ok := got[row.Figure]
					if noisy := row.Figure == InUse || row.Figure == Resident || row.Figure == Goroutines; !ok || !noisy && value <= 0 {
						t.Errorf("%s is %v", row.Figure, value)
					}
				}
			})
		}
	}
}
