package main

import (
	"fmt"
	"strings"
)

// formatPage returns the page with the list and the results of a whole run on a commit.
func formatPage(results []result, commit string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Broken on purpose: a change for each requirement

Each row of this page breaks one requirement of [the specification](spec.md) in one place of the source, and names the test that
failed because of it. The changes are in internal/mutate/mutants. `+"`make mutate`"+` tries them all, one at a time, and writes this page;
`+"`make test`"+` tries a sample.

The last whole run, on commit %.8s, tried %d changes of %d requirements. The tests noticed all of them. Changes that are newer than
that commit were tried when they were added.

| requirement | changed | the line becomes | noticed by |
|---|---|---|---|
`, commit, len(results), countRows(results))
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | `%s` | %s | `%s` |\n", r.mutant.row, r.mutant.file, describeChange(r.mutant), r.by)
	}
	return b.String()
}

func countRows(results []result) int {
	rows := map[string]bool{}
	for _, r := range results {
		rows[r.mutant.row] = true
	}
	return len(rows)
}

// describeChange returns the first line of the change that differs, as code of Markdown.
func describeChange(m mutant) string {
	before, after := strings.Split(m.old, "\n"), strings.Split(m.new, "\n")
	for i, line := range after {
		if i >= len(before) || line != before[i] {
			if line = strings.TrimSpace(line); line != "" && len(after) >= len(before) {
				return markCode(line)
			}
			break
		}
	}
	for i, line := range before {
		if i >= len(after) || line != after[i] {
			return "without " + markCode(strings.TrimSpace(line))
		}
	}
	return ""
}

// markCode returns a line of code for a cell of a table.
func markCode(line string) string {
	if runes := []rune(line); len(runes) > 90 {
		line = string(runes[:89]) + "…"
	}
	line = strings.ReplaceAll(line, "|", "\\|")
	if strings.Contains(line, "`") {
		return "`` " + line + " ``"
	}
	return "`" + line + "`"
}
