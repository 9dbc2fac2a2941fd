package main

import (
	"os"
	"path/filepath"
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

func TestStaleRules(t *testing.T) {
	e := rules(t, "red server a: x\nred client b: x\nskipped server c d e: x\n")
	judgeOutcome(verdict{Role: "server", Scenario: "a"}, nil, e)
	got := e.staleRules("server", "2025-11-25")
	if len(got) != 1 || !got[0].Red || got[0].Scenario != "c" || !strings.Contains(got[0].Reasons[0], `expected/2025-11-25.txt lists "skipped server c d e"`) {
		t.Errorf("%+v", got)
	}
}

func TestMalformedRules(t *testing.T) {
	for _, text := range []string{
		"red server x",          // no reason
		"red server x: ",        // an empty one
		"red server: y",         // no scenario
		"red cleint x: y",       // an unknown role
		"red server x check: y", // only a scenario can be red
		"unchecked server x check: y",
		"skipped server x: y",        // no check
		"error server x: y",          // only the client ends in a scenario
		"error client x check: y",    // only a scenario can end with an error
		"green server x: y",          // an unknown kind
		"skipped server x check: \t", // an empty reason
	} {
		path := filepath.Join(t.TempDir(), "rules.txt")
		if err := os.WriteFile(path, []byte("# first\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readExpectations(path); err == nil || !strings.Contains(err.Error(), "rules.txt:2: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Each revision has a list of expectations, and each list can be read.
func TestExpected(t *testing.T) {
	for _, revision := range revisions {
		if _, err := readExpectations(filepath.Join("expected", revision+".txt")); err != nil {
			t.Error(err)
		}
	}
}
