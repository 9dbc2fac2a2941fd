// Package rounds has the work done in rounds: in each, every contestant does every item once, each measurement in a process of
// its own, in turn; so that what a machine does beside it falls on all alike.
package rounds

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dowel-mcp/dowel/bench/work"
)

// Run is what came of it, and on what.
type Run struct {
	Date     time.Time         `json:"date"`
	Machine  string            `json:"machine"`
	Load     string            `json:"load,omitempty"` // when it began
	Versions map[string]string `json:"versions"`       // by module
	Rounds   int               `json:"rounds"`
	Time     time.Duration     `json:"time"`
	Samples  []Sample          `json:"samples"`
}

// failures is how often a measurement may fail before it is not tried again.
const failures = 2

// Do does the items in rounds and tells of its progress. The error is that of ctx, or says that nothing can be measured here.
func Do(ctx context.Context, items []work.Item, rounds int, o work.Options, progress io.Writer) (Run, error) {
	run := Run{Date: time.Now(), Machine: machine(), Load: load(), Versions: versions(), Rounds: rounds, Time: o.Time}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return run, err
	}
	defer os.RemoveAll(folder)
	left := map[string]int{}
	for round := range rounds {
		for i, item := range items {
			for turn := range item.Contestants {
				contestant := item.Contestants[(turn+round)%len(item.Contestants)]
				key := item.Name + " " + contestant
				if left[key] >= failures {
					continue
				}
				s, err := sample(ctx, item, contestant, o, folder)
				if err != nil {
					return run, err
				}
				s.Round = round
				run.Samples = append(run.Samples, s)
				if s.Failed != "" {
					left[key]++
				} else if s.Unable != "" {
					left[key] = failures
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
