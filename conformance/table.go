package main

import (
	"bytes"
	"fmt"
	"slices"
)

// tableOf makes docs/conformance.md.
func tableOf(all []verdict) []byte {
	var b bytes.Buffer
	b.WriteString(`# Conformance

What the official conformance suite (` + "`@modelcontextprotocol/conformance`" + ` 0.2.0-alpha.12) says of dowel. ` + "`make conformance`" + `
runs it, in both roles and every revision that it knows, and fails where this page is not what comes out. A check that
failed or warned, a scenario without a success and one that did not run count as failed, and a skipped check does unless
` + "`conformance/expected`" + ` gives the reason.

| scenarios | passed | not yet |
|---|---|---|
`)
	for _, role := range roles {
		for _, revision := range revisions {
			green, expected := 0, 0
			for _, v := range all {
				if v.Role == role && v.Revision == revision {
					if v.Expected == "" {
						green++
					} else {
						expected++
					}
				}
			}
			fmt.Fprintf(&b, "| %s, %s | %d | %d |\n", role, revision, green, expected)
		}
	}
	var names []string
	for _, v := range all {
		names = append(names, v.Role+" "+v.Scenario)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	b.WriteString("\n✓ passed, with the number of checks; ○ not yet; empty where the revision has no such thing.\n\n| scenario |")
	for _, revision := range revisions {
		b.WriteString(" " + revision + " |")
	}
	b.WriteString("\n|---|" + "---|---|---|---|\n")
	for _, name := range names {
		b.WriteString("| " + name + " |")
		for _, revision := range revisions {
			b.WriteString(" " + cell(all, name, revision) + " |")
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}

func cell(all []verdict, name, revision string) string {
	for _, v := range all {
		switch {
		case v.Role+" "+v.Scenario != name || v.Revision != revision:
		case v.Expected != "":
			return "○"
		default:
			return fmt.Sprintf("✓ %d", v.Passed)
		}
	}
	return ""
}
