package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test program take the place of Node with the suite, and of the server fixture.
func TestMain(m *testing.M) {
	if as := os.Getenv("CONFORMANCE_STAND_IN"); as != "" {
		os.Exit(standIn(as))
	}
	goleak.VerifyTestMain(m)
}

func standIn(as string) int {
	switch as {
	case "suite": // writes a success for the scenario of --scenario, or for each one in the environment
		return standInSuite(os.Args[2:])
	case "crash":
		fmt.Fprintln(os.Stderr, "SyntaxError")
		return 1
	}
	return standInProcess(as)
}

func standInSuite(args []string) int {
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 {
			return args[i+1]
		}
		return ""
	}
	names := []string{value("--scenario")}
	if value("--suite") == "all" {
		names = strings.Fields(os.Getenv("CONFORMANCE_STAND_IN_SCENARIOS"))
	}
	for _, name := range names {
		if args[0] == "server" {
			name = "server-" + name
		}
		folder := filepath.Join(value("-o"), name+"-2026-11-21T06-48-10-468Z")
		raw, _ := json.Marshal([]check{{ID: strings.Join(args, " "), Status: "SUCCESS"}})
		if os.MkdirAll(folder, 0o700) != nil || os.WriteFile(filepath.Join(folder, "checks.json"), raw, 0o600) != nil ||
			os.WriteFile(filepath.Join(folder, "stdout.txt"), []byte("done\n"), 0o600) != nil {
			return 2
		}
	}
	return 1 // which must be ignored
}

// standInRunner returns a runner that uses this program as its suite.
func standInRunner(t *testing.T, as, expected string) *runner {
	t.Helper()
	t.Setenv("CONFORMANCE_STAND_IN", as)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{
		suite: &suite{folder: writeFiles(t, map[string]string{"expected/2026-07-28.txt": expected}), node: program, program: "index.js",
			scenarios: map[string][]string{"client 2026-07-28": {"b", "a"}, "client 2025-11-25": {"a"}, "client extension": {"skills", "auth/x"}}},
		fixtures: t.TempDir(), results: t.TempDir(),
	}
	return r
}

func red(all []verdict) (names []string) {
	for _, v := range all {
		if v.Red {
			names = append(names, v.Scenario)
		}
	}
	return names
}

func TestPlan(t *testing.T) {
	s := standInRunner(t, "suite", "").suite
	for _, test := range []struct{ revision, only, scenarios, extensions string }{
		{"2026-07-28", "", "a auth/x b skills", "skills auth/x"},
		{"2025-11-25", "", "a auth/x", "auth/x"},
		{"2025-06-18", "", "", ""},
		{"2026-07-28", "b", "b", ""},
		{"2026-07-28", "skills", "skills", "skills"},
		{"2025-11-25", "skills", "", ""},
	} {
		p := s.newPlan("client", test.revision, test.only)
		if got := strings.Join(p.scenarios, " "); got != test.scenarios {
			t.Errorf("%v: scenarios %q", test, got)
		}
		if got := strings.Join(p.extensions, " "); got != test.extensions {
			t.Errorf("%v: extensions %q", test, got)
		}
	}
	if !s.hasScenario("skills") || s.hasScenario("nonsense") {
		t.Error("hasScenario: want true for skills and false for nonsense")
	}
}

func TestRunner(t *testing.T) {
	for _, test := range []struct {
		name, as, runs, only, expected string
		red                            string
	}{
		{"all", "suite", "a b", "", "", ""},
		{"one does not run", "suite", "a", "", "", "b"},
		{"one is not listed", "suite", "a b new", "", "", "new"},
		{"an expected one is green", "suite", "a b", "", "red client a: later\n", "a"},
		{"a rule is stale", "suite", "a b", "", "red client gone: later\n", "gone"},
		{"the suite crashes", "crash", "", "", "", "a auth/x b skills"},
		{"the suite crashes although red is expected", "crash", "", "", "red client *: later\n", "a auth/x b skills"},
		{"one of them", "suite", "", "b", "red client gone: later\n", ""},
		{"an extension", "suite", "", "skills", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := standInRunner(t, test.as, test.expected)
			t.Setenv("CONFORMANCE_STAND_IN_SCENARIOS", test.runs)
			all, err := r.judgePlan(t.Context(), r.newPlan("client", "2026-07-28", test.only))
			if got := strings.Join(red(all), " "); err != nil || got != test.red || len(all) == 0 {
				t.Errorf("red %q, want %q; %v", got, test.red, err)
			}
		})
	}
}

// A scenario of an extension runs in the revision of its plan. Without --force the suite would skip
// it, and without a revision it would choose 2025-11-25 for a client.
func TestExtensionsAreForced(t *testing.T) {
	r := standInRunner(t, "suite", "")
	p := r.newPlan("client", "2026-07-28", "")
	if _, err := r.judgePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	all, err := collectOutcomes(filepath.Join(r.results, "client-2026-07-28"), "client")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range p.extensions {
		if args := all[name].checks[0].ID; !strings.Contains(args, "--spec-version 2026-07-28 ") || !strings.HasSuffix(args, "--force") {
			t.Errorf("%s ran with %s", name, args)
		}
	}
}

func TestMissingSuite(t *testing.T) {
	r := standInRunner(t, "suite", "")
	r.node += "-gone"
	if _, err := r.judgePlan(t.Context(), r.newPlan("client", "2026-07-28", "")); err == nil || !strings.Contains(err.Error(), "the suite could not be run") {
		t.Error(err)
	}
}

// If the server ends while the suite runs, the run ends with the output of the server, not with a
// list of red scenarios.
func TestServerDies(t *testing.T) {
	r := standInRunner(t, "suite", "")
	r.scenarios["server 2026-07-28"] = []string{"a"}
	f := &serverFixture{ended: make(chan struct{}), output: filepath.Join(writeFiles(t, map[string]string{"log": "panic: oh"}), "log")}
	f.err = errors.New("exit status 2")
	close(f.ended)
	r.server = f
	if _, err := r.judgePlan(t.Context(), r.newPlan("server", "2026-07-28", "")); err == nil || !strings.Contains(err.Error(), "panic: oh") {
		t.Error(err)
	}
}
