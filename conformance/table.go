package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tableOf makes docs/conformance.md of the verdicts of a whole run.
func tableOf(version string, all []verdict) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Conformance

What the official conformance suite (`+"`@modelcontextprotocol/conformance`"+` %s) says of dowel. `+"`make conformance`"+`
runs it, in both roles and every revision that it knows, and fails where this page is not what comes out. A check that
failed or warned, a scenario without a success, one that did not run and a client that did not end well count as failed,
and a skipped check does unless `+"`conformance/expected`"+` gives the reason. `+"`go run ./conformance -help`"+` says more.

The server is `+"`dowel serve everything`"+`, with both eras at one URL; the client is `+"`conformance/client`"+`, written with package
client as any user would. Before 2026-07-28, a revision selects the suite's scenarios more than what is spoken: towards a
server, nearly all of them offer 2025-11-25.

`, version)
	writeCounts(&b, all)
	b.WriteString("\nNot yet:\n\n")
	writeGrouped(&b, all, func(v verdict) []string {
		if v.Expected == "" {
			return nil
		}
		return []string{v.Expected}
	})
	b.WriteString("\nSkipped checks:\n\n")
	writeGrouped(&b, all, func(v verdict) []string { return v.Skipped })
	b.WriteString("\n✓ passed, with the number of checks; ○ not yet; empty where the revision has no such thing.\n\n")
	writeCells(&b, all)
	return b.Bytes()
}

func writeCounts(b *bytes.Buffer, all []verdict) {
	b.WriteString("| scenarios | passed | not yet |\n|---|---|---|\n")
	for _, role := range roles {
		for _, revision := range revisions {
			green, expected := 0, 0
			for _, v := range all {
				switch {
				case v.Role != role || v.Revision != revision:
				case v.Expected == "":
					green++
				default:
					expected++
				}
			}
			fmt.Fprintf(b, "| %s, %s | %d | %d |\n", role, revision, green, expected)
		}
	}
}

// writeGrouped writes each reason, with how often it was given.
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
		if rows[name][v.Revision] = "○"; v.Expected == "" {
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
