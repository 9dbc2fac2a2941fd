// Command conformance runs the official conformance suite against dowel, as a server and as a
// client, in every protocol revision that the suite knows. It judges the results that the suite
// writes. These are red: a check that failed or warned, a scenario without a success, a scenario
// that did not run, and a client that ended with an error. A skipped check is red too, unless it is
// listed with its reason. A result that is listed as red and is not red is red as well.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const usage = `Run the official conformance suite against dowel. It needs Go, and npm once: ./conformance/install.sh

  go run ./conformance                                    everything, and compare it with docs/conformance.md
  go run ./conformance -write                             everything, and write docs/conformance.md anew
  go run ./conformance -role client -revision 2025-11-25  a part
  go run ./conformance -only tools_call -keep checks      one scenario; what the suite has seen stays in ./checks
  go run ./conformance -json | jq -c 'select(.red)'       for machines

A scenario is red, and the exit status 1, where a check is a FAILURE or a WARNING, or SKIPPED without a listed reason;
where no check is a SUCCESS; where it did not run; and where the client ended with an error or not at all.

What is expected of a revision stands in conformance/expected/REVISION.txt, a line each:

  red ROLE SCENARIO: reason              it is not green yet; SCENARIO may end in *
  skipped ROLE SCENARIO CHECK: reason    CHECK is the check's name, which a red line shows in parentheses
  error client SCENARIO: reason          the client is right to end with an error

What is listed there and turns out otherwise is red as well.

In the folder of -keep, ROLE-REVISION/SCENARIO-TIME/checks.json holds the checks, beside it stdout.txt and stderr.txt
what the client printed; ROLE-REVISION/suite.log is what the suite printed, server.log what the server did.

`

// options are the command line's.
type options struct {
	folder    string // of the fixtures and the suite
	roles     []string
	revisions []string
	only      string
	keep      string
	json      bool
	table     string // the file that holds the table
	write     bool   // it is written, not compared
	whole     bool   // everything runs, so that there is a table
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = runAll(ctx, o, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func parseOptions(args []string, help io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.Usage = func() { fmt.Fprint(help, usage); flags.PrintDefaults() }
	role := flags.String("role", "", "one `role`: server or client; both without it")
	revision := flags.String("revision", "", "one `revision`; all without it")
	flags.StringVar(&o.only, "only", "", "one `scenario`, in every revision that has it")
	flags.StringVar(&o.keep, "keep", "", "a new `folder` for what the suite writes down; none is kept without it")
	flags.StringVar(&o.folder, "folder", "conformance", "the `folder` of this program's source")
	flags.BoolVar(&o.json, "json", false, "print one JSON object a scenario")
	flags.StringVar(&o.table, "table", filepath.Join("docs", "conformance.md"), "the `file` with the table of what came out")
	flags.BoolVar(&o.write, "write", false, "write the table instead of comparing it")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag; -help shows them", flags.Arg(0))
	}
	if o.roles, err = parseChoice("role", *role, roles); err != nil {
		return o, err
	}
	if o.revisions, err = parseChoice("revision", *revision, revisions); err != nil {
		return o, err
	}
	o.whole = *role == "" && *revision == "" && o.only == ""
	if o.write && !o.whole {
		return o, errors.New("-write needs everything to run: leave out -role, -revision and -only")
	}
	return o, nil
}

func parseChoice(name, chosen string, all []string) ([]string, error) {
	switch {
	case chosen == "":
		return all, nil
	case slices.Contains(all, chosen):
		return []string{chosen}, nil
	}
	return nil, fmt.Errorf("-%s %s: there are %s", name, chosen, strings.Join(all, ", "))
}

// runAll runs the selected scenarios. Results go to out, progress to progress.
func runAll(ctx context.Context, o options, out, progress io.Writer) (err error) {
	start := time.Now()
	s, err := openSuite(ctx, o.folder)
	if err != nil {
		return err
	}
	if o.only != "" && !s.hasScenario(o.only) {
		return fmt.Errorf("-only %s: the suite has no such scenario; docs/conformance.md names all", o.only)
	}
	r, remove, err := newRunner(ctx, s, o)
	defer remove()
	if err != nil {
		return err
	}
	if r.server != nil {
		defer func() { err = errors.Join(err, r.server.close()) }()
	}
	var all []verdict
	for _, role := range o.roles {
		for _, revision := range o.revisions {
			p := s.newPlan(role, revision, o.only)
			if len(p.scenarios) == 0 {
				continue
			}
			fmt.Fprintf(progress, "%s %s: running %s …\n", role, revision, countScenarios(len(p.scenarios)))
			since := time.Now()
			verdicts, err := r.judgePlan(ctx, p)
			if err != nil {
				return fmt.Errorf("%s %s: %w", role, revision, err)
			}
			reportVerdicts(out, p, verdicts, time.Since(since), o.json)
			all = append(all, verdicts...)
		}
	}
	fmt.Fprintf(progress, "%s in %.0f s\n", countScenarios(len(all)), time.Since(start).Seconds())
	return reportTotal(o, s.version, all)
}

// newRunner builds the fixtures and starts the server, if a server is tested. remove deletes its
// files.
func newRunner(ctx context.Context, s *suite, o options) (r *runner, remove func(), err error) {
	remove = func() {}
	fixtures, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, remove, err
	}
	remove = func() { os.RemoveAll(fixtures) }
	r = &runner{suite: s, fixtures: fixtures, results: filepath.Join(fixtures, "results")}
	if o.keep != "" {
		if r.results, err = filepath.Abs(o.keep); err != nil {
			return nil, remove, err
		}
		if there, err := os.ReadDir(r.results); err == nil && len(there) > 0 {
			return nil, remove, fmt.Errorf("-keep %s: there is something in it, which would be taken for results of this run", o.keep)
		}
	}
	if err := os.MkdirAll(r.results, 0o755); err != nil {
		return nil, remove, err
	}
	if err := buildFixtures(ctx, s.folder, fixtures); err != nil {
		return nil, remove, err
	}
	if slices.Contains(o.roles, "server") {
		r.server, err = startServer(ctx, filepath.Join(fixtures, "server"), filepath.Join(r.results, "server.log"))
	}
	return r, remove, err
}
