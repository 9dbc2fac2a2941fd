package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tableOf returns the text of docs/conformance.md for the verdicts of a whole run.
func tableOf(version string, all []verdict) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Conformance

The results of the official conformance suite (`+"`@modelcontextprotocol/conformance`"+` %s) for dowel. `+"`make conformance`"+`
runs the suite in both roles and every revision that it knows, and fails if the results differ from this page. A scenario
fails if one of its checks failed or warned, if none succeeded, if it did not run, or if the client ended with an error. A
skipped check is a failure too, unless `+"`conformance/expected`"+` gives a reason. `+"`go run ./conformance -help`"+` says more.

The server is `+"`dowel serve everything`"+`, with both eras at one URL, the tools of `+"`conformance/server/tasks.go`"+`
and the skills of `+"`conformance/server/skills`"+`. The client is `+"`conformance/client`"+`, which uses only the
public interface of packages client, auth and skills. Before 2026-07-28, a revision selects the scenarios rather than the revision on the
wire: to a server, nearly all of them offer 2025-11-25.

`, version)
	writeCounts(&b, all)
	b.WriteString("\nNot yet:\n\n")
	writeGrouped(&b, all, func(v verdict) []string {
		if v.Expected == "" {
			return nil
		}
		return []string{v.Expected}
	})
	b.WriteString("\nScenarios of which the suite skips each check:\n\n")
	writeGrouped(&b, all, func(v verdict) []string {
		if v.Unchecked == "" {
			return nil
		}
		return []string{v.Scenario + ": " + v.Unchecked}
	})
	b.WriteString("\nSkipped checks:\n\n")
	writeGrouped(&b, all, func(v verdict) []string { return v.Skipped })
	b.WriteString("\n✓ passed, with the number of checks; ○ not yet; – skipped by the suite; empty if the revision does not have the scenario.\n\n")
	writeCells(&b, all)
	return b.Bytes()
}

func writeCounts(b *bytes.Buffer, all []verdict) {
	b.WriteString("| scenarios | passed | not yet | skipped by the suite |\n|---|---|---|---|\n")
	for _, role := range roles {
		for _, revision := range revisions {
			green, expected, unchecked := 0, 0, 0
			for _, v := range all {
				switch {
				case v.Role != role || v.Revision != revision:
				case v.Unchecked != "":
					unchecked++
				case v.Expected == "":
					green++
				default:
					expected++
				}
			}
			fmt.Fprintf(b, "| %s, %s | %d | %d | %d |\n", role, revision, green, expected, unchecked)
		}
	}
}

// writeGrouped writes each reason and the number of times that it was given.
func writeGrouped(b *bytes.Buffer, all []verdict, reasons func(verdict) []string) {
	times := map[string]int{}
	for _, v := range all {
		for _, reason := range reasons(v) {
			times[reason]++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(times)) {
		fmt.Fprintf(b, "- %s (%d)\n", reason, times[reason])
	}
	if len(times) == 0 {
		b.WriteString("- none\n")
	}
}

func writeCells(b *bytes.Buffer, all []verdict) {
	rows := map[string]map[string]string{}
	for _, v := range all {
		name := v.Role + " " + v.Scenario
		if rows[name] == nil {
			rows[name] = map[string]string{}
		}
		switch {
		case v.Unchecked != "":
			rows[name][v.Revision] = "–"
		case v.Expected != "":
			rows[name][v.Revision] = "○"
		default:
			rows[name][v.Revision] = fmt.Sprintf("✓ %d", v.Passed)
		}
	}
	fmt.Fprintf(b, "| scenario | %s |\n|---|%s\n", strings.Join(revisions, " | "), strings.Repeat("---|", len(revisions)))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(b, "| %s |", name)
		for _, revision := range revisions {
			fmt.Fprintf(b, " %s |", rows[name][revision])
		}
		b.WriteString("\n")
	}
}
