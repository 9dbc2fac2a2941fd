package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/bench/peers"
	"github.com/dowel-mcp/dowel/bench/rounds"
	"github.com/dowel-mcp/dowel/bench/work"
)

// page collects the Markdown.
type page struct {
	bytes.Buffer
	figures
	notes []string
}

// Markdown returns the tables of the items, with the machine, the versions and an explanation. plot
// is the relative link to the plot, or "".
func Markdown(run rounds.Run, items []work.Item, plot string) []byte {
	p := &page{figures: figuresOf(run)}
	p.head(run, plot)
	for len(items) > 0 {
		end := slices.IndexFunc(items, func(i work.Item) bool { return i.Table != items[0].Table })
		if end < 0 {
			end = len(items)
		}
		p.table(items[:end])
		items = items[end:]
	}
	p.remarks()
	return p.Bytes()
}

func (p *page) head(run rounds.Run, plot string) {
	fmt.Fprintf(p, "Measured on %s: %s", run.Date.Format(time.DateOnly), run.Machine)
	if run.Load != "" {
		fmt.Fprintf(p, "; load averages at the start %s", run.Load)
	}
	fmt.Fprintf(p, ". Rounds: %d; each measurement repeats its work for %v.\n\n| | module | version |\n|---|---|---|\n", run.Rounds, run.Time)
	for _, one := range peers.All {
		if one.Module() != "" {
			fmt.Fprintf(p, "| %s | %s | %s |\n", one.Name(), one.Module(), run.Versions[one.Module()])
		}
	}
	p.WriteString(howToRead)
	if plot != "" {
		fmt.Fprintf(p, "\n![What each takes, times the floor](%s)\n", plot)
	}
}

const howToRead = `
How to read it: in each round every implementation does each piece of work once, in a process of its own, in turn. A factor is
that of an implementation to the floor *within* a round, and the median over the rounds; for dowel the least and the greatest
stand behind it. *Ahead* is the best peer's figure as a multiple of dowel's, made in the same way: above 1, dowel is the better
one. *Floor* is the least code that does the same wire work: it scans the envelope by hand, decodes the arguments once,
encodes the result once, checks nothing, and hands each message to another goroutine; *encoding/json* is the same with that
package. Everyone else has the same typed echo tool with validation of its input on. Times, allocations and bytes are client and
server together, where a table does not say otherwise. Every client has an http.Client that keeps 128 connections, and calls with
context.Background().
`

func (p *page) table(items []work.Item) {
	first := items[0]
	fmt.Fprintf(p, "\n## %s\n\n| what |", first.Table)
	for _, name := range first.Contestants {
		fmt.Fprintf(p, " %s |", name)
	}
	rivals := len(first.Rivals()) > 0
	if rivals {
		p.WriteString(" ahead |")
	}
	p.WriteString(" bound | holds |\n|---|" + strings.Repeat("---|", len(first.Contestants)))
	if rivals {
		p.WriteString("---|")
	}
	p.WriteString("---|---|\n")
	for _, item := range items {
		for _, row := range item.Rows {
			p.factors(item, row)
		}
	}
	p.absolutes(items)
}

// factors writes a row of the table: the factors of all contestants, and the bound.
func (p *page) factors(item work.Item, row work.Row) {
	fmt.Fprintf(p, "| %s |", row.Title)
	for _, name := range item.Contestants {
		fmt.Fprintf(p, " %s |", p.factor(item, name, row.Figure))
	}
	ahead, rival := p.lead(item, row.Figure)
	if len(item.Rivals()) > 0 {
		if rival == "" || row.Figure == work.Goroutines {
			p.WriteString(" – |")
		} else {
			fmt.Fprintf(p, " **%s ×** |", times(ahead))
		}
	}
	bound, holds := p.holds(item, row, ahead, rival)
	fmt.Fprintf(p, " %s | %s |\n", bound, holds)
}

// factor formats a cell: a factor to the base, but for the base and for goroutines the figure
// itself.
func (p *page) factor(item work.Item, name string, figure work.Figure) string {
	values := p.values(item.Name, name, figure)
	if len(values) == 0 {
		return "–" + p.note(p.reason(item.Name, name))
	}
	if name == item.Base() || figure == work.Goroutines {
		return written(median(values), figure)
	}
	ratios := p.ratios(item.Name, name, item.Base(), figure)
	switch {
	case len(ratios) == 0:
		return written(median(values), figure)
	case name == item.Ours() && len(ratios) > 1:
		return fmt.Sprintf("%s × (%s–%s)", times(median(ratios)), times(ratios[0]), times(ratios[len(ratios)-1]))
	}
	return times(median(ratios)) + " ×"
}

// holds formats a row's bound, and says whether it holds.
func (p *page) holds(item work.Item, row work.Row, ahead float64, rival string) (bound, verdict string) {
	var bounds, broken []string
	if row.Base > 0 {
		bounds = append(bounds, fmt.Sprintf("≤ %g × %s", row.Base, item.Base()))
		ratios := p.ratios(item.Name, item.Ours(), item.Base(), row.Figure)
		if len(ratios) == 0 || median(ratios) > row.Base {
			broken = append(broken, item.Base())
		}
	}
	if row.Rivals > 0 {
		bounds = append(bounds, fmt.Sprintf("≥ %g × ahead", row.Rivals))
		if rival == "" || ahead < row.Rivals {
			broken = append(broken, "ahead"+p.most(item, row.Figure))
		}
	}
	switch {
	case bounds == nil:
		return "–", ""
	case broken == nil:
		return strings.Join(bounds, ", "), "yes"
	}
	return strings.Join(bounds, ", "), "**no** (" + strings.Join(broken, ", ") + ")"
}

// most says by how much the base is ahead of the best rival. No implementation can be ahead by much
// more, so this puts a broken bound into proportion.
func (p *page) most(item work.Item, figure work.Figure) string {
	least := math.Inf(1)
	for _, rival := range item.Rivals() {
		if ratios := p.ratios(item.Name, rival, item.Base(), figure); len(ratios) > 0 {
			least = min(least, median(ratios))
		}
	}
	if math.IsInf(least, 1) {
		return ""
	}
	return fmt.Sprintf("; the %s itself is %s × ahead", item.Base(), times(least))
}

// absolutes writes a second table with the figures themselves, and with allocations and bytes if
// they were counted.
func (p *page) absolutes(items []work.Item) {
	first := items[0]
	fmt.Fprintf(p, "\n<details><summary>In figures</summary>\n\n| what |")
	for _, name := range first.Contestants {
		fmt.Fprintf(p, " %s |", name)
	}
	p.WriteString("\n|---|" + strings.Repeat("---|", len(first.Contestants)) + "\n")
	for _, item := range items {
		for _, row := range item.Rows {
			fmt.Fprintf(p, "| %s |", row.Title)
			for _, name := range item.Contestants {
				fmt.Fprintf(p, " %s |", p.absolute(item.Name, name, row.Figure))
			}
			p.WriteString("\n")
		}
	}
	p.WriteString("\n</details>\n")
}

func (p *page) absolute(item, name string, figure work.Figure) string {
	values := p.values(item, name, figure)
	if len(values) == 0 {
		return "–"
	}
	cell := written(median(values), figure)
	allocs, bytes := p.values(item, name, work.Allocs), p.values(item, name, work.Bytes)
	if len(allocs) > 0 && len(bytes) > 0 {
		cell += fmt.Sprintf(", %s allocs, %s", written(median(allocs), work.Allocs), written(median(bytes), work.Bytes))
	}
	return cell
}

// note adds a footnote, unless the page has it already, and returns the reference to it.
func (p *page) note(text string) string {
	at := slices.Index(p.notes, text)
	if at < 0 {
		at = len(p.notes)
		p.notes = append(p.notes, text)
	}
	return fmt.Sprintf("[^%d]", at+1)
}

func (p *page) remarks() {
	p.WriteString("\n## What each does otherwise than the others\n\n")
	for _, one := range slices.Concat(peers.Strict, peers.All) {
		if remarks := one.Remarks(); len(remarks) > 0 {
			fmt.Fprintf(p, "- **%s**: %s\n", one.Name(), strings.Join(remarks, " "))
		}
	}
	for i, text := range p.notes {
		if i == 0 {
			p.WriteString("\n")
		}
		fmt.Fprintf(p, "[^%d]: %s\n", i+1, strings.ReplaceAll(text, "|", "\\|"))
	}
}
