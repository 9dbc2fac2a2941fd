package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	table := string(tableOf("1.2.3", []verdict{
		{Role: "server", Revision: "2025-11-25", Scenario: "ping", Passed: 3, Skipped: []string{"no such thing"}},
		{Role: "server", Revision: "2026-07-28", Scenario: "ping", Passed: 4},
		{Role: "client", Revision: "2026-07-28", Scenario: "auth/x", Passed: 1, Expected: "later", Reasons: []string{"failed"}},
		{Role: "client", Revision: "2026-07-28", Scenario: "s", Unchecked: "it cannot subscribe"},
	}))
	for _, want := range []string{
		" 1.2.3) ", "| server ping |  |  | ✓ 3 | ✓ 4 |\n", "| client auth/x |  |  |  | ○ |\n", "| server, 2025-11-25 | 1 | 0 | 0 |\n",
		"| client, 2026-07-28 | 0 | 1 | 1 |\n", "| client s |  |  |  | – |\n", "- s: it cannot subscribe (1)\n", "- later (1)\n", "- no such thing (1)\n",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in the table:\n%s", want, table)
		}
	}
	if got := string(tableOf("1", nil)); strings.Count(got, "- none\n") != 3 {
		t.Errorf("want \"- none\" under all headings:\n%s", got)
	}
}

func TestReportTotal(t *testing.T) {
	green := verdict{Role: "server", Revision: "2025-11-25", Scenario: "ping", Passed: 3}
	red := verdict{Role: "server", Revision: "2025-11-25", Scenario: "ping", Red: true}
	file := filepath.Join(t.TempDir(), "table.md")
	for _, step := range []struct {
		name     string
		o        options
		verdicts []verdict
		want     string // of the error
	}{
		{"nothing ran", options{whole: true, table: file}, nil, "no scenario ran"},
		{"red is not written", options{whole: true, table: file, write: true}, []verdict{green, red}, "red: 1 of 2 scenarios"},
		{"a missing table", options{whole: true, table: file}, []verdict{green}, "no such file"},
		{"a part of the scenarios needs no table", options{table: file}, []verdict{green}, ""},
		{"written", options{whole: true, table: file, write: true}, []verdict{green}, ""},
		{"compared", options{whole: true, table: file}, []verdict{green}, ""},
		{"another result", options{whole: true, table: file}, []verdict{{Role: "server", Revision: "2025-11-25", Scenario: "ping", Passed: 2}}, "the file: | server ping |  |  | ✓ 3 |  |\n  this run: | server ping |  |  | ✓ 2 |  |"},
		{"more checks", options{whole: true, table: file}, []verdict{{Role: "server", Revision: "2025-11-25", Scenario: "ping", Passed: 4}}, ""},
		{"one more scenario", options{whole: true, table: file}, []verdict{green, {Role: "server", Revision: "2025-11-25", Scenario: "z", Passed: 2}}, "differs from the results of this run"},
	} {
		err := reportTotal(step.o, "1", step.verdicts)
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%s: %v, want %q", step.name, err, step.want)
		}
		if _, err := os.Stat(file); step.name == "red is not written" && err == nil {
			t.Error("a table with red in it was written")
		}
	}
}

func TestReport(t *testing.T) {
	all := []verdict{
		{Role: "client", Revision: "2025-11-25", Scenario: "a", Passed: 1},
		{Role: "client", Revision: "2025-11-25", Scenario: "b", Red: true, Reasons: []string{"broken", "twice"}},
		{Role: "client", Revision: "2025-11-25", Scenario: "c", Expected: "later", Reasons: []string{"broken"}},
		{Role: "client", Revision: "2025-11-25", Scenario: "d", Unchecked: "it cannot subscribe"},
	}
	var text, lines strings.Builder
	p := plan{role: "client", revision: "2025-11-25"}
	reportVerdicts(&text, p, all, 1500*time.Millisecond, false)
	const want = "  RED  b\n         broken\n         twice\nclient 2025-11-25: 1 green, 1 skipped by the suite, 1 expected red, 1 red (1.5 s)\n"
	if text.String() != want {
		t.Errorf("%s", text.String())
	}
	reportVerdicts(&lines, p, all, time.Second, true)
	const wantLines = `{"role":"client","revision":"2025-11-25","scenario":"a","red":false,"passed":1}
{"role":"client","revision":"2025-11-25","scenario":"b","red":true,"passed":0,"reasons":["broken","twice"]}
{"role":"client","revision":"2025-11-25","scenario":"c","red":false,"passed":0,"expected":"later","reasons":["broken"]}
{"role":"client","revision":"2025-11-25","scenario":"d","red":false,"passed":0,"unchecked":"it cannot subscribe"}
`
	if lines.String() != wantLines {
		t.Errorf("%s", lines.String())
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"":                                     "",
		"-write":                               "",
		"-role client -revision 2025-11-25":    "",
		"-role host":                           "-role host: want server, client",
		"-revision 2024-11-05":                 "-revision 2024-11-05: want 2025-03-26",
		"-write -role client":                  "-write needs everything",
		"-write -only ping":                    "-write needs everything",
		"-write -revision 2025-11-25":          "-write needs everything",
		"ping":                                 `"ping" is not a flag`,
		"-help":                                "help requested",
		"-json -keep x -table y -folder z -no": "not defined",
	} {
		var help strings.Builder
		o, err := parseOptions(strings.Fields(args), &help)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
		if part := strings.Contains(args, "-role") || strings.Contains(args, "-revision") || strings.Contains(args, "-only"); err == nil && o.whole == part {
			t.Errorf("%s: whole %v", args, o.whole)
		}
		if args == "-help" && !strings.Contains(help.String(), "skipped ROLE SCENARIO CHECK: reason") {
			t.Errorf("the help does not explain the lists:\n%s", help.String())
		}
	}
}
