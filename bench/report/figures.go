// Package report writes tables and a plot of measured figures.
package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/dowel-mcp/dowel/bench/rounds"
	"github.com/dowel-mcp/dowel/bench/work"
)

// figures holds the samples of a run by item, contestant and round.
type figures map[string]map[string]map[int]rounds.Sample

func figuresOf(run rounds.Run) figures {
	all := figures{}
	for _, s := range run.Samples {
		if all[s.Item] == nil {
			all[s.Item] = map[string]map[int]rounds.Sample{}
		}
		if all[s.Item][s.Contestant] == nil {
			all[s.Item][s.Contestant] = map[int]rounds.Sample{}
		}
		all[s.Item][s.Contestant][s.Round] = s
	}
	return all
}

// values returns a contestant's figures of all rounds, sorted.
func (f figures) values(item, contestant string, figure work.Figure) (all []float64) {
	for _, s := range f[item][contestant] {
		if value, ok := s.Result[figure]; ok {
			all = append(all, value)
		}
	}
	slices.Sort(all)
	return all
}

// ratios returns the figure of one contestant divided by the figure of another, for each round that
// has both, sorted.
func (f figures) ratios(item, of, to string, figure work.Figure) (all []float64) {
	for round, s := range f[item][of] {
		above, ok1 := s.Result[figure]
		below, ok2 := f[item][to][round].Result[figure]
		if ok1 && ok2 && below > 0 {
			all = append(all, above/below)
		}
	}
	slices.Sort(all)
	return all
}

// lead returns the best rival's figure as a multiple of ours, and the rival's name.
func (f figures) lead(item work.Item, figure work.Figure) (factor float64, rival string) {
	factor = math.Inf(1)
	for _, r := range item.Rivals() {
		if ratios := f.ratios(item.Name, r, item.Ours(), figure); len(ratios) > 0 && median(ratios) < factor {
			factor, rival = median(ratios), r
		}
	}
	return factor, rival
}

// reason returns a sentence that explains why a contestant's figure is missing.
func (f figures) reason(item, contestant string) string {
	for _, s := range f[item][contestant] {
		if s.Unable != "" {
			return s.Unable
		}
		if s.Failed != "" {
			return contestant + " failed: " + s.Failed
		}
	}
	return contestant + " was not measured."
}

// median returns the median of sorted values. There must be at least one.
func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// times formats a factor with three digits.
func times(factor float64) string {
	switch {
	case factor >= 99.5:
		return fmt.Sprintf("%.0f", factor)
	case factor >= 9.95:
		return fmt.Sprintf("%.1f", factor)
	}
	return fmt.Sprintf("%.2f", factor)
}

// written formats a figure with its unit.
func written(value float64, figure work.Figure) string {
	switch figure {
	case work.Time, work.CPU:
		return scaled(value, 1000, "ns", "µs", "ms", "s")
	case work.Bytes, work.InUse, work.Resident, work.Size:
		return scaled(value, 1024, "B", "KiB", "MiB", "GiB")
	case work.Goroutines:
		return fmt.Sprintf("%.2f", math.Abs(value))
	}
	return thousands(value)
}

func scaled(value, step float64, units ...string) string {
	unit := 0
	for math.Abs(value) >= step*0.9995 && unit < len(units)-1 {
		value /= step
		unit++
	}
	digits := 0
	if a := math.Abs(value); unit > 0 && a < 99.95 {
		digits = 1
		if a < 9.995 {
			digits = 2
		}
	}
	return fmt.Sprintf("%.*f %s", digits, value, units[unit])
}

// thousands formats a count with commas.
func thousands(value float64) string {
	s := fmt.Sprintf("%.0f", value)
	for at := len(s) - 3; at > 0 && s[at-1] != '-'; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}
