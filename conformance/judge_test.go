package main

import (
	"strings"
	"testing"
)

// Each outcome that must be red is red.
func TestJudge(t *testing.T) {
	const list = `
# a comment
red client auth/*: later
red server whole: later too
unchecked server empty: the suite cannot subscribe
unchecked client alone: the suite cannot subscribe
skipped server partly one check: it cannot happen
error client refusing: to refuse is right
`
	ok, failed := check{ID: "a", Status: "SUCCESS"}, check{ID: "b", Status: "FAILURE", Message: "broken"}
	skipped := check{ID: "shared", Name: "one check", Status: "SKIPPED"}
	ran := func(checks ...check) *outcome { return &outcome{checks: checks} }
	for _, test := range []struct {
		name, role, scenario string
		outcome              *outcome
		red, expected        bool
		reason               string // the first, or "" if there are none
	}{
		{"success", "server", "s", ran(ok, check{Status: "INFO"}), false, false, ""},
		{"failure", "server", "s", ran(ok, failed), true, false, "FAILURE b (): broken"},
		{"warning", "server", "s", ran(ok, check{ID: "b", Status: "WARNING"}), true, false, "WARNING b"},
		{"a status that is not known", "server", "s", ran(ok, check{ID: "b", Status: "MAYBE"}), true, false, "MAYBE b"},
		{"no status", "server", "s", ran(ok, check{ID: "b"}), true, false, " b"},
		{"skipped", "server", "s", ran(ok, skipped), true, false, "SKIPPED shared (one check)"},
		{"skipped, with a reason", "server", "partly", ran(ok, skipped), false, false, ""},
		{"skipped, with a reason for another check of the same id", "server", "partly", ran(ok, check{ID: "shared", Name: "other", Status: "SKIPPED"}), true, false, "SKIPPED shared (other)"},
		{"skipped, with a reason for another role", "client", "partly", ran(ok, skipped), true, false, "SKIPPED shared"},
		{"a reason to skip excuses no failure", "server", "partly", ran(ok, check{ID: "shared", Name: "one check", Status: "FAILURE"}), true, false, "FAILURE shared"},
		{"nothing but skipped", "server", "partly", ran(skipped), true, false, "no check succeeded"},
		{"nothing but skipped, as listed", "server", "empty", ran(skipped, skipped), false, false, ""},
		{"listed as unchecked, and a check runs", "server", "empty", ran(ok, skipped), true, false, "SKIPPED shared"},
		{"listed as unchecked, and no check is there", "server", "empty", ran(), true, false, "no check succeeded"},
		{"listed as unchecked of the other role", "client", "empty", ran(skipped), true, false, "SKIPPED shared"},
		{"listed as unchecked, and the client failed", "client", "alone", &outcome{checks: []check{skipped}, failure: "lost"}, true, false, "SKIPPED shared"},
		{"nothing but information", "server", "s", ran(check{Status: "INFO"}), true, false, "no check succeeded"},
		{"no checks", "server", "s", ran(), true, false, "no check succeeded"},
		{"did not run", "server", "s", nil, true, false, "it did not run"},
		{"the client failed", "client", "s", &outcome{checks: []check{ok}, failure: "lost"}, true, false, "the client ended with an error: lost"},
		{"the client failed, as expected", "client", "refusing", &outcome{checks: []check{ok}, failure: "lost"}, false, false, ""},
		{"a client that is right to fail excuses no failure", "client", "refusing", ran(ok, failed), true, false, "FAILURE b"},
		{"expected", "server", "whole", ran(ok, failed), false, true, "FAILURE b"},
		{"expected, did not run", "server", "whole", nil, true, true, "it did not run"},
		{"expected of the other role", "client", "whole", ran(failed), true, false, "FAILURE b"},
		{"expected by a pattern", "client", "auth/x", ran(failed), false, true, "FAILURE b"},
		{"expected, and green", "server", "whole", ran(ok), true, true, "it is expected to be red (later too) but is green"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := judgeOutcome(verdict{Role: test.role, Scenario: test.scenario}, test.outcome, rules(t, list))
			if got.Red != test.red || (got.Expected != "") != test.expected {
				t.Errorf("%+v", got)
			}
			first := ""
			if len(got.Reasons) > 0 {
				first = got.Reasons[0]
			}
			if !strings.HasPrefix(first, test.reason) || (first == "") != (test.reason == "") {
				t.Errorf("the reason is %q, want %q", first, test.reason)
			}
		})
	}
}

func TestDescribeCheck(t *testing.T) {
	long := strings.Repeat("é", 200)
	for want, c := range map[string]check{
		"a b":                          {Message: "a\n  b", Description: "c"},
		"c":                            {Description: "c"},
		strings.Repeat("é", 150) + "…": {Message: long},
	} {
		if got := describeCheck(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
