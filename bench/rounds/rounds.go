// Package rounds measures in rounds. In each round every contestant does every item once, one after
// the other and each in a process of its own. So other load on the machine affects all contestants
// alike.
package rounds

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dowel-mcp/dowel/bench/work"
)

// Run holds all samples, and describes the machine and the versions.
type Run struct {
	Date     time.Time         `json:"date"`
	Machine  string            `json:"machine"`
	Load     string            `json:"load,omitempty"` // load averages at the start
	Versions map[string]string `json:"versions"`       // by module
	Rounds   int               `json:"rounds"`
	Time     time.Duration     `json:"time"`
	Samples  []Sample          `json:"samples"`
}

// maxFailures is the number of failures after which a contestant does not try an item again.
const maxFailures = 2

// Do measures the items in rounds and writes its progress. A failed measurement is a sample, not an
// error. The error is the cause of ctx's end, or says why this machine cannot measure.
func Do(ctx context.Context, items []work.Item, rounds int, o work.Options, progress io.Writer) (Run, error) {
	run := Run{Date: time.Now(), Machine: Machine(), Load: load(), Versions: versions(), Rounds: rounds, Time: o.Time}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return run, err
	}
	defer os.RemoveAll(folder)
	failures := map[string]int{} // by item and contestant
	for round := range rounds {
		for i, item := range items {
			for turn := range item.Contestants {
				contestant := item.Contestants[(turn+round)%len(item.Contestants)]
				key := item.Name + " " + contestant
				if failures[key] >= maxFailures {
					continue
				}
				s, err := sample(ctx, item, contestant, o, folder)
				if err != nil {
					return run, err
				}
				s.Round = round
				run.Samples = append(run.Samples, s)
				if s.Failed != "" {
					failures[key]++
				} else if s.Unable != "" {
					failures[key] = maxFailures
				}
				fmt.Fprintf(progress, "round %d/%d, %d/%d %s: %s\n", round+1, rounds, i+1, len(items), key, outcome(item, s))
			}
		}
	}
	return run, nil
}

func outcome(item work.Item, s Sample) string {
	switch {
	case s.Failed != "":
		return "failed: " + s.Failed
	case s.Unable != "":
		return "not able: " + s.Unable
	}
	figure := item.Rows[0].Figure
	return fmt.Sprintf("%.4g %s", s.Result[figure], figure)
}
