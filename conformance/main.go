// Command conformance runs the official conformance suite against dowel, as a server and as a client, in every protocol
// revision that the suite knows, and judges by what the suite has written down: a check that failed or warned, a scenario
// without a success or one that did not run is red, and a skipped check is, unless it is listed with its reason.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

const usage = `Run the official conformance suite against dowel.

  go run ./conformance                                  everything, as make conformance does
  go run ./conformance -role client -revision 2025-11-25
  go run ./conformance -only tools_call -keep /tmp/checks

What is expected to be red, and why, stands in conformance/expected/REVISION.txt; what passes although it is
listed there is red too. Install the suite first: ./conformance/install.sh (npm).

`

// options are the command line's.
type options struct {
	folder    string // of the fixtures and the suite
	roles     []string
	revisions []string
	only      string
	keep      string
	json      bool
	table     string // a file that is to hold the table
	write     bool   // it is written, not compared
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage); flags.PrintDefaults() }
	role := flags.String("role", "", "server or client; both without it")
	revision := flags.String("revision", "", "one `revision`; all without it")
	flags.StringVar(&o.only, "only", "", "one `scenario`")
	flags.StringVar(&o.keep, "keep", "", "a `folder` for what the suite writes down; none is kept without it")
	flags.StringVar(&o.folder, "folder", "conformance", "the `folder` of the suite")
	flags.BoolVar(&o.json, "json", false, "one JSON object a scenario")
	flags.StringVar(&o.table, "table", "", "compare the table in this `file` with what came out")
	flags.BoolVar(&o.write, "write", false, "write the -table instead")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.roles, err = choice("role", *role, roles); err != nil {
		return o, err
	}
	o.revisions, err = choice("revision", *revision, revisions)
	return o, err
}

func choice(name, chosen string, all []string) ([]string, error) {
	switch {
	case chosen == "":
		return all, nil
	case slices.Contains(all, chosen):
		return []string{chosen}, nil
	}
	return nil, fmt.Errorf("-%s %s: there are %s", name, chosen, strings.Join(all, ", "))
}

func run(ctx context.Context, o options, out io.Writer) error {
	results := o.keep
	if results == "" {
		folder, err := os.MkdirTemp("", "conformance")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		results = folder
	}
	results, err := filepath.Abs(results)
	if err != nil {
		return err
	}
	s, err := openSuite(ctx, o.folder, results)
	if err != nil {
		return err
	}
	defer s.close()
	var all []verdict
	for _, role := range o.roles {
		for _, revision := range o.revisions {
			verdicts, err := s.judge(ctx, role, revision, o.only)
			if err != nil {
				return err
			}
			report(out, role, revision, verdicts, o.json)
			all = append(all, verdicts...)
		}
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return conclude(o, all)
}

// conclude says what the run comes to.
func conclude(o options, all []verdict) error {
	red := 0
	for _, v := range all {
		if v.Red {
			red++
		}
	}
	switch {
	case len(all) == 0:
		return errors.New("no scenario ran")
	case red > 0:
		return fmt.Errorf("%d of %d scenarios are red", red, len(all))
	case o.table == "":
		return nil
	}
	table := tableOf(all)
	if o.write {
		return os.WriteFile(o.table, table, 0o644)
	}
	there, err := os.ReadFile(o.table)
	if err != nil {
		return err
	}
	if string(there) != string(table) {
		return fmt.Errorf("%s is not what came out; write it anew with -table %s -write", o.table, o.table)
	}
	return nil
}

// report tells of the scenarios of one role and revision.
func report(out io.Writer, role, revision string, verdicts []verdict, asJSON bool) {
	if asJSON {
		lines := json.NewEncoder(out)
		for _, v := range verdicts {
			_ = lines.Encode(v) // who does not read needs none
		}
		return
	}
	green, expected := 0, 0
	for _, v := range verdicts {
		switch {
		case v.Red:
			fmt.Fprintf(out, "  RED  %s\n", v.Scenario)
			for _, reason := range v.Reasons {
				fmt.Fprintf(out, "         %s\n", reason)
			}
		case v.Expected != "":
			expected++
		default:
			green++
		}
	}
	fmt.Fprintf(out, "%-6s %s: %d green, %d expected red, %d red\n", role, revision, green, expected, len(verdicts)-green-expected)
}
