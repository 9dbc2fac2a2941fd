package rounds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/bench/work"
)

// TestMain is also the process that measures.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := Measure(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func named(t *testing.T, name string) work.Item {
	for _, item := range work.All() {
		if item.Name == name {
			return item
		}
	}
	t.Fatalf("there is no item %s", name)
	return work.Item{}
}

func TestDo(t *testing.T) {
	call := named(t, "call/memory/2026-07-28/1")
	call.Contestants = []string{"floor", "dowel"}
	unable := named(t, "call/stream/2026-07-28/1")
	unable.Contestants = []string{"mcp-go"}
	wrong := work.Item{Name: "nothing", Rows: call.Rows, Contestants: []string{"floor"}}
	const count = 3
	run, err := Do(t.Context(), []work.Item{call, unable, wrong}, count, work.Options{Time: time.Millisecond}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, s := range run.Samples {
		n[s.Item+" "+s.Contestant]++
		switch s.Item {
		case call.Name:
			if s.Result[work.Time] <= 0 {
				t.Errorf("%+v has no time", s)
			}
		case unable.Name:
			if s.Unable == "" || s.Failed != "" {
				t.Errorf("%+v does not say what the peer cannot do", s)
			}
		default:
			if !strings.Contains(s.Failed, `unknown item "nothing"`) {
				t.Errorf("%+v does not carry what the process said", s)
			}
		}
	}
	for what, want := range map[string]int{
		call.Name + " floor": count, call.Name + " dowel": count, unable.Name + " mcp-go": 1, "nothing floor": maxFailures,
	} {
		if n[what] != want {
			t.Errorf("%s was measured %d times, want %d", what, n[what], want)
		}
	}
}

func TestDoEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	call := named(t, "call/child/2026-07-28/1")
	start := time.Now()
	_, err := Do(ctx, []work.Item{call}, 1, work.Options{Time: time.Minute}, io.Discard)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if late := time.Since(start); late > time.Minute {
		t.Errorf("it ended after %v", late)
	}
}
