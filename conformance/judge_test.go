package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rules writes expectations to a file and reads them.
func rules(t *testing.T, text string) *expectations {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := readExpectations(path)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Everything that must be red is.
func TestJudge(t *testing.T) {
	const list = `
# a comment
red client auth/*: later
red server whole: later too
skipped server partly one-check: it cannot happen
`
	ok, failed := check{ID: "a", Status: "SUCCESS"}, check{ID: "b", Status: "FAILURE", Message: "broken"}
	for _, test := range []struct {
		name, role, scenario string
		checks               []check
		ran                  bool
		red, expected        bool
	}{
		{"success", "server", "s", []check{ok, {Status: "INFO"}}, true, false, false},
		{"failure", "server", "s", []check{ok, failed}, true, true, false},
		{"warning", "server", "s", []check{ok, {ID: "b", Status: "WARNING"}}, true, true, false},
		{"a status that is not known", "server", "s", []check{ok, {ID: "b", Status: "MAYBE"}}, true, true, false},
		{"skipped", "server", "s", []check{ok, {ID: "b", Status: "SKIPPED"}}, true, true, false},
		{"skipped, with a reason", "server", "partly", []check{ok, {ID: "one-check", Status: "SKIPPED"}}, true, false, false},
		{"skipped, with a reason for another check", "server", "partly", []check{ok, {ID: "other", Status: "SKIPPED"}}, true, true, false},
		{"skipped, with a reason for another role", "client", "partly", []check{ok, {ID: "one-check", Status: "SKIPPED"}}, true, true, false},
		{"nothing but skipped", "server", "partly", []check{{ID: "one-check", Status: "SKIPPED"}}, true, true, false},
		{"nothing but information", "server", "s", []check{{Status: "INFO"}}, true, true, false},
		{"no checks", "server", "s", nil, true, true, false},
		{"did not run", "server", "s", nil, false, true, false},
		{"expected", "server", "whole", []check{ok, failed}, true, false, true},
		{"expected, did not run", "server", "whole", nil, false, false, true},
		{"expected of the other role", "client", "whole", []check{failed}, true, true, false},
		{"expected by a pattern", "client", "auth/x", []check{failed}, true, false, true},
		{"expected, and green", "server", "whole", []check{ok}, true, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := judge(verdict{Role: test.role, Scenario: test.scenario}, test.checks, test.ran, rules(t, list))
			if got.Red != test.red || (got.Expected != "") != test.expected {
				t.Errorf("%+v", got)
			}
			if got.Red && len(got.Reasons) == 0 {
				t.Error("no reason is given")
			}
		})
	}
}

func TestUnusedRules(t *testing.T) {
	e := rules(t, "red server a: x\nred client b: x\nskipped server c d: x\n")
	judge(verdict{Role: "server", Scenario: "a"}, nil, false, e)
	if got := e.unused("server"); !slices.Equal(got, []string{"c d"}) {
		t.Errorf("unused: %q", got)
	}
}

func TestMalformedRules(t *testing.T) {
	for _, text := range []string{"red server x", "red x: y", "skipped server x: y", "green server x: y"} {
		path := filepath.Join(t.TempDir(), "rules.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readExpectations(path); err == nil || !strings.Contains(err.Error(), ":1:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCollect(t *testing.T) {
	folder := t.TempDir()
	for path, content := range map[string]string{
		"server-ping-2026-11-21T06-48-10-468Z/checks.json":     `[{"id":"p","status":"SUCCESS"}]`,
		"server-ping-2026-11-21T06-48-11-468Z/checks.json":     `[{"id":"p","status":"FAILURE","errorMessage":"m"}]`,
		"auth/basic-cimd-2026-11-21T06-49-40-655Z/checks.json": `[]`,
		"other/stdout.txt": "x",
	} {
		full := filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := collect(folder, "server")
	if err != nil || len(all) != 2 || len(all["ping"]) != 2 || all["ping"][1].Message+all["ping"][0].Message != "m" {
		t.Errorf("%v, %v", all, err)
	}
	if checks, there := all["auth/basic-cimd"]; !there || len(checks) != 0 {
		t.Errorf("%v", all)
	}
	if err := os.WriteFile(filepath.Join(folder, "other", "checks.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(folder, "server"); err == nil {
		t.Error("a file that is no JSON was taken")
	}
}

func TestList(t *testing.T) {
	all := scenariosOf("Server scenarios (test against a server):\n  - ping [2025-06-18,2025-11-25]\n  - tasks-x [extension]\n\n" +
		"Client scenarios (test against a client):\n  - auth/x [2026-07-28]\n\nAuthorization server scenarios:\n  - as [2025-11-25]\n")
	if len(all) != 4 || !slices.Equal(all["server 2025-11-25"], []string{"ping"}) || !slices.Equal(all["client 2026-07-28"], []string{"auth/x"}) {
		t.Errorf("%v", all)
	}
}

func TestTable(t *testing.T) {
	table := string(tableOf([]verdict{
		{Role: "server", Revision: "2025-11-25", Scenario: "ping", Passed: 3},
		{Role: "client", Revision: "2026-07-28", Scenario: "auth/x", Expected: "later"},
	}))
	for _, want := range []string{"| server ping |  |  | ✓ 3 |  |", "| client auth/x |  |  |  | ○ |", "| server, 2025-11-25 | 1 | 0 |"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in the table:\n%s", want, table)
		}
	}
}
