package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reportVerdicts prints the scenarios of one role and revision.
func reportVerdicts(out io.Writer, p plan, verdicts []verdict, took time.Duration, asJSON bool) {
	if asJSON {
		lines := json.NewEncoder(out)
		for _, v := range verdicts {
			_ = lines.Encode(v) // if standard output is closed, there is no place to report it
		}
		return
	}
	green, expected, unchecked := 0, 0, 0
	for _, v := range verdicts {
		switch {
		case v.Red:
			fmt.Fprintf(out, "  RED  %s\n", v.Scenario)
			for _, reason := range v.Reasons {
				fmt.Fprintf(out, "         %s\n", reason)
			}
		case v.Unchecked != "":
			unchecked++
		case v.Expected != "":
			expected++
		default:
			green++
		}
	}
	fmt.Fprintf(out, "%-6s %s: %d green, %d skipped by the suite, %d expected red, %d red (%.1f s)\n", p.role, p.revision, green,
		unchecked, expected, len(verdicts)-green-unchecked-expected, took.Seconds())
}

// reportTotal writes the table or compares it, if everything ran and nothing is red. Its error is
// the result of the run.
func reportTotal(o options, version string, all []verdict) error {
	red := 0
	for _, v := range all {
		if v.Red {
			red++
		}
	}
	switch {
	case len(all) == 0:
		return errors.New("no scenario ran: the suite has none for this role, revision and name")
	case red > 0:
		return fmt.Errorf("red: %d of %s", red, countScenarios(len(all)))
	case !o.whole:
		return nil
	}
	table := tableOf(version, all)
	if o.write {
		return os.WriteFile(o.table, table, 0o644)
	}
	there, err := os.ReadFile(o.table)
	if err != nil {
		return err
	}
	if line, is, was := firstDifference(string(table), string(there)); line > 0 {
		return fmt.Errorf("%s:%d differs from the results of this run; -write updates it\n  the file: %s\n  this run: %s", o.table, line, was, is)
	}
	return nil
}

// firstDifference returns the number of the first line in which a table and the earlier table in b
// differ, counted from 1, and the line in each. It returns 0 if no line differs. A cell may have
// more checks than before: some checks run for each request, and on a busy machine a client repeats
// one.
func firstDifference(a, b string) (line int, inA, inB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	at := func(lines []string, i int) string {
		if i < len(lines) {
			return lines[i]
		}
		return "(the end)"
	}
	for i := range max(len(as), len(bs)) {
		if !sameCells(at(as, i), at(bs, i)) {
			return i + 1, at(as, i), at(bs, i)
		}
	}
	return 0, "", ""
}

// sameCells reports whether two lines have the same cells, apart from more checks in the first.
func sameCells(a, b string) bool {
	as, bs := strings.Split(a, "|"), strings.Split(b, "|")
	return slices.EqualFunc(as, bs, func(now, before string) bool {
		n, isCount := countChecks(now)
		m, wasCount := countChecks(before)
		return now == before || isCount && wasCount && n > m
	})
}

// countChecks returns the number of checks in a cell of a scenario that passed.
func countChecks(cell string) (n int, passed bool) {
	count, passed := strings.CutPrefix(strings.TrimSpace(cell), "✓ ")
	n, err := strconv.Atoi(count)
	return n, passed && err == nil
}

func countScenarios(n int) string {
	if n == 1 {
		return "1 scenario"
	}
	return fmt.Sprintf("%d scenarios", n)
}
