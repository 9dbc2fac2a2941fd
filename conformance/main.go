// Command conformance runs the official conformance suite against dowel, as a server and as a
// client, in every protocol revision that the suite knows. It judges the results that the suite
// writes. A scenario is red if one of its checks failed or warned, if none of them succeeded, if it
// did not run, or if the client ended with an error. A skipped check makes it red too, unless the
// check is listed with a reason. A scenario that is listed as red but is not red counts as red.
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
  go run ./conformance -write                             everything, and update docs/conformance.md
  go run ./conformance -role client -revision 2025-11-25  a part
  go run ./conformance -only tools_call -keep checks      one scenario, and keep the suite's results in ./checks
  go run ./conformance -json | jq -c 'select(.red)'       one JSON object per line

A scenario is red if a check is a FAILURE or a WARNING, or SKIPPED without a listed reason; if no check is a SUCCESS and
it is not listed as unchecked; if it did not run; or if the client ended with an error or did not end. If any scenario
is red, the exit status is 1.

The file conformance/expected/REVISION.txt lists the known exceptions, one per line:

  red ROLE SCENARIO: reason              the scenario is not green yet; SCENARIO may end in *
  unchecked ROLE SCENARIO: reason        the suite skips each check of the scenario
  skipped ROLE SCENARIO CHECK: reason    CHECK is the check's name, which a red line shows in parentheses
  error client SCENARIO: reason          the client is right to end with an error

An exception that did not occur is red too: remove it from the file.

In the folder of -keep, each ROLE-REVISION/SCENARIO-TIME has checks.json and the client's output in stdout.txt and
stderr.txt. ROLE-REVISION/suite.log is the output of the suite, server.log the output of the server.

`

// options are the parsed flags.
type options struct {
	folder    string // of the fixtures and the suite
	roles     []string
	revisions []string
	only      string
	keep      string
	json      bool
	table     string // the file that holds the table
	write     bool   // write the table instead of comparing it
	whole     bool   // everything runs, so the table can be made
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
	role := flags.String("role", "", "run one `role`, server or client (default both)")
	revision := flags.String("revision", "", "run one `revision` (default all)")
	flags.StringVar(&o.only, "only", "", "run one `scenario`, in every revision that has it")
	flags.StringVar(&o.keep, "keep", "", "keep the suite's results in a new `folder` (default: delete them)")
	flags.StringVar(&o.folder, "folder", "conformance", "the `folder` of this program's source")
	flags.BoolVar(&o.json, "json", false, "print one JSON object per scenario")
	flags.StringVar(&o.table, "table", filepath.Join("docs", "conformance.md"), "the `file` with the table of results")
	flags.BoolVar(&o.write, "write", false, "write the table instead of comparing it")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag; -help lists the flags", flags.Arg(0))
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
	return nil, fmt.Errorf("-%s %s: want %s", name, chosen, strings.Join(all, ", "))
}

// runAll runs the selected scenarios. Results go to out, progress to progress.
func runAll(ctx context.Context, o options, out, progress io.Writer) (err error) {
	start := time.Now()
	s, err := openSuite(ctx, o.folder)
	if err != nil {
		return err
	}
	if o.only != "" && !s.hasScenario(o.only) {
		return fmt.Errorf("-only %s: the suite has no scenario of this name; docs/conformance.md lists all", o.only)
	}
	r, remove, err := newRunner(ctx, s, o)
	defer remove()
	if err != nil {
		return err
	}
	if r.server != nil {
		defer func() { err = errors.Join(err, r.server.stopServer()) }()
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
			return nil, remove, fmt.Errorf("-keep %s: the folder is not empty, and its files would count as results of this run; name a new one", o.keep)
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
