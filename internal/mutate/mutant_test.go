package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/docs"
)

const root = "../.."

func readLists(t *testing.T) []mutant {
	t.Helper()
	folder, err := fs.Sub(lists, "mutants")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readMutants(folder)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each change applies to the code as it is, and belongs to a requirement with tests.
func TestMutantsApply(t *testing.T) {
	all, err := docs.ReadRequirements(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	rows := testsOfRows(all)
	for _, m := range readLists(t) {
		text, err := fs.ReadFile(os.DirFS(root), m.file)
		if err != nil {
			t.Errorf("%s: %v", m.at, err)
			continue
		}
		if _, err := m.apply(string(text)); err != nil {
			t.Error(err)
		}
		if len(rows[m.row]) == 0 {
			t.Errorf("%s: docs/spec has no requirement %s with a test", m.at, m.row)
		}
		for _, test := range m.tests {
			if !slices.Contains(rows[m.row], test) {
				t.Errorf("%s: docs/spec does not name the test %s for %s", m.at, test, m.row)
			}
		}
	}
}

// Each requirement that binds dowel has a change. Recommendations need none.
func TestRequirementsHaveChanges(t *testing.T) {
	rows, err := docs.ReadRequirements(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string]bool{}
	for _, m := range readLists(t) {
		changed[m.row] = true
	}
	for _, row := range rows {
		isExempt := strings.HasPrefix(row.At, "docs/spec/should.md")
		if !isExempt && !strings.Contains(row.Tests, "does not bind") && !changed[row.ID] {
			t.Errorf("%s: no change in internal/mutate/mutants breaks %s", row.At, row.ID)
		}
	}
}

func TestParseMutants(t *testing.T) {
	const list = "# A comment.\n\n## basic.07 a/b.go\ntests: `a.TestOne` `a/c.TestTwo`\n \tif x {\n-\t\treturn 1\n+\t\treturn 2\n \t}\n\n## basic.08 c.go\n-gone\n"
	all, err := parseMutants("base.txt", list)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].row != "basic.07" || all[0].file != "a/b.go" || all[0].at != "base.txt:3" || all[1].new != "" {
		t.Fatalf("%+v", all)
	}
	if want := docs.FindTests("`a.TestOne` `a/c.TestTwo`"); !slices.Equal(all[0].tests, want) {
		t.Errorf("the tests are %v, want %v", all[0].tests, want)
	}
	got, err := all[0].apply("func f() int {\n\tif x {\n\t\treturn 1\n\t}\n}\n")
	if want := "func f() int {\n\tif x {\n\t\treturn 2\n\t}\n}\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, text := range []string{"", "\tif x {\n\t\treturn 1\n\t}\n\tif x {\n\t\treturn 1\n\t}\n"} {
		if _, err := all[0].apply(text); err == nil {
			t.Errorf("the change applies to %q", text)
		}
	}
	for _, bad := range []string{"-x\n", "## basic.07 a.go\n", "## basic.07 a.go\n-x\n+x\n", "## basic.07 a.go\nx\n", "## basic.07 a.go\ntests: none\n-x\n"} {
		if _, err := parseMutants("base.txt", bad); err == nil || !strings.HasPrefix(err.Error(), "base.txt:") {
			t.Errorf("%q: %v, want an error that names the line", bad, err)
		}
	}
}

// A change is caught if it breaks a rule that a test checks, and survives if it is harmless. A
// change that does not compile, does not apply or has no test is broken.
func TestTry(t *testing.T) {
	t.Chdir(root)
	change := func(to string) mutant {
		return mutant{row: "basic.04", file: "jsonrpc/id.go", old: "\treturn append(dst, \"null\"...)\n", new: to, tests: docs.FindTests("`jsonrpc.TestKnownMethodsAreNotCopied` `jsonrpc.TestIDsThatAreNone`")}
	}
	for _, tt := range []struct {
		name string
		m    mutant
		want verdict
		says string
	}{
		{"a broken rule", change("\treturn append(dst, \"0\"...)\n"), caught, "by jsonrpc.TestIDsThatAreNone,"},
		{"a harmless change", change("\t_ = 0\n\treturn append(dst, \"null\"...)\n"), survived, "[jsonrpc.TestKnownMethodsAreNotCopied jsonrpc.TestIDsThatAreNone]"},
		{"no Go", change("\treturn dest\n"), broken, "it does not compile"},
		{"other code", mutant{row: "basic.04", file: "jsonrpc/id.go", old: "no such code", new: "x", tests: change("").tests}, broken, "occurs 0 times"},
		{"no test", mutant{row: "basic.04", file: "jsonrpc/id.go", old: "package jsonrpc\n", new: "package jsonrpc\n\n", tests: docs.FindTests("`jsonrpc.TestMissing`")}, broken, "TestMissing does not exist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := tryMutant(context.Background(), tt.m, time.Hour)
			if r.verdict != tt.want || !strings.Contains(r.String(), tt.says) {
				t.Errorf("got %v, want %s with %q", r, tt.want, tt.says)
			}
		})
	}
}

// The tests of one package form a group. The changed package comes first, the command line last.
func TestGroupTests(t *testing.T) {
	m := mutant{file: "auth/scope.go", tests: docs.FindTests("`internal/cli.TestA` `server.TestB` `auth.TestC` `server.TestD` `client.TestE` `auth.TestF`")}
	var groups []string
	for _, group := range groupTests(m) {
		groups = append(groups, fmt.Sprint(group))
	}
	want := []string{"[auth.TestC auth.TestF]", "[client.TestE]", "[server.TestB server.TestD]", "[internal/cli.TestA]"}
	if !slices.Equal(groups, want) {
		t.Errorf("the groups are %q, want %q", groups, want)
	}
}

// judgeOutput finds in the output of a group which test noticed the change.
func TestJudge(t *testing.T) {
	group := docs.FindTests("`auth.TestOne` `auth.TestTwo`")
	const begun = "=== RUN   TestOne\n=== PAUSE TestOne\n=== RUN   TestTwo\n=== PAUSE TestTwo\n"
	for _, tt := range []struct {
		name, out string
		failed    bool
		want      verdict
		by        string
	}{
		{"both pass", begun + "--- PASS: TestOne (0.00s)\n--- PASS: TestTwo (0.00s)\nPASS\n", false, survived, "."},
		{"the second fails", begun + "--- PASS: TestOne (0.00s)\n--- FAIL: TestTwo (0.00s)\n    --- FAIL: TestTwo/a (0.00s)\nFAIL\n", true, caught, "auth.TestTwo"},
		{"a subtest takes too long", begun + "panic: test timed out after 1s\n\trunning tests:\n\t\tTestTwo/a (1s)\n", true, caught, "auth.TestTwo"},
		{"the process ends", begun + "fatal error: concurrent map writes\n", true, caught, "auth.TestOne"},
		{"one is missing", "=== RUN   TestOne\n--- PASS: TestOne (0.00s)\nPASS\n", false, broken, "."},
		{"no Go", "FAIL\tauth [build failed]\n", true, broken, "."},
	} {
		r := result{verdict: survived}
		r.judgeOutput(group, []byte(tt.out), tt.failed)
		if r.verdict != tt.want || r.by.String() != tt.by {
			t.Errorf("%s: %s by %v, want %s by %s", tt.name, r.verdict, r.by, tt.want, tt.by)
		}
	}
}

func TestChoose(t *testing.T) {
	all := []mutant{{row: "basic.01"}, {row: "basic.02"}, {row: "http.01"}, {row: "http.02"}}
	rows := func(o options) (ids []string) {
		chosen, err := chooseMutants(slices.Clone(all), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range chosen {
			ids = append(ids, m.row)
		}
		return ids
	}
	if got := rows(options{rows: []string{"http.", "basic.02"}}); !slices.Equal(got, []string{"basic.02", "http.01", "http.02"}) {
		t.Errorf("rows: %v", got)
	}
	order := rows(options{sample: time.Minute, seed: "a commit"})
	if again := rows(options{sample: time.Minute, seed: "a commit"}); len(order) != len(all) || !slices.Equal(order, again) {
		t.Errorf("the same seed gives the orders %v and %v", order, again)
	}
	if _, err := chooseMutants(slices.Clone(all), options{rows: []string{"stdio."}}); err == nil {
		t.Error("an unknown row is accepted")
	}
}

func TestDescribeChange(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{"\tif a {\n\t\tx()\n", "\tif a || b {\n\t\tx()\n", "`if a \\|\\| b {`"},
		{"\tx()\n\ty()\n", "\tx()\n", "without `y()`"},
		{"\tx(`a`)\n", "\tx(`b`)\n", "`` x(`b`) ``"},
	} {
		if got := describeChange(mutant{old: tt.before, new: tt.after}); got != tt.want {
			t.Errorf("%q to %q: %s, want %s", tt.before, tt.after, got, tt.want)
		}
	}
}

// Results are in the order of the changes, and a sample ends with its time.
func TestTryAll(t *testing.T) {
	t.Chdir(root)
	missing := mutant{row: "basic.04", file: "jsonrpc/id.go", old: "no such code", new: "x"}
	noFile := mutant{row: "basic.05", file: "jsonrpc/none.go", old: "x", new: "y"}
	results := tryAll(t.Context(), []mutant{missing, noFile, missing}, options{workers: 3, limit: time.Minute})
	if len(results) != 3 || results[0].mutant.row != "basic.04" || results[1].mutant.row != "basic.05" || results[1].verdict != broken {
		t.Errorf("%v", results)
	}
	if results := tryAll(t.Context(), []mutant{missing, noFile, missing}, options{sample: 1, limit: time.Minute}); len(results) == 0 || len(results) == 3 {
		t.Errorf("a sample of 1 ns tried %d of 3 changes", len(results))
	}
}

// A run continues after an interruption, and results of another commit are forgotten.
func TestResultLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	seen, missed := mutant{row: "basic.01", at: "base.txt:3"}, mutant{row: "basic.02", at: "base.txt:7"}
	test := docs.FindTests("`jsonrpc.TestParse`")[0]
	for _, step := range []struct {
		commit string
		known  bool
	}{{"a", false}, {"a", true}, {"b", false}, {"a", false}} {
		l, err := openResultLog(path, step.commit)
		if err != nil {
			t.Fatal(err)
		}
		r, known := l.findResult(seen)
		if known != step.known || known && (r.by != test || r.verdict != caught) {
			t.Errorf("commit %s: %v, %v, want %v", step.commit, r, known, step.known)
		}
		if _, known := l.findResult(missed); known {
			t.Errorf("commit %s: a change that was not noticed is not tried again", step.commit)
		}
		for _, r := range []result{{mutant: seen, verdict: caught, by: test}, {mutant: missed, verdict: survived}} {
			if err := l.addResult(r); err != nil {
				t.Error(err)
			}
		}
		if err := l.file.Close(); err != nil {
			t.Error(err)
		}
	}
}
