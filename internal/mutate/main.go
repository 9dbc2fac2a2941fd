// Command mutate breaks the requirements of the specification, one at a time, and checks that the
// tests that docs/spec names for the requirement notice it.
//
// Usage, from the root of the repository:
//
//	go run ./internal/mutate [flags] [ROW...]
//
// The lists in internal/mutate/mutants say what is changed: at least one place for each requirement
// that dowel implements. A change never touches the tree: the go command gets it as an overlay.
// Without rows all changes are tried. The exit status is 1 if a change is not noticed, does not
// compile or does not apply.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/internal/docs"
)

//go:embed mutants/*.txt
var lists embed.FS

// resultPage has the list and the results of the last whole run.
const resultPage = "docs/mutants.md"

type options struct {
	sample  time.Duration
	seed    string
	write   bool
	limit   time.Duration
	workers int
	resume  string
	log     *resultLog // of resume; nil without it
	rows    []string
}

func main() {
	var o options
	flag.DurationVar(&o.sample, "sample", 0, "begin no change after this `time`, and try them in the order of -seed")
	flag.StringVar(&o.seed, "seed", "", "with -sample, the order follows from this `text`, for example a commit (default: the time)")
	flag.BoolVar(&o.write, "write", false, "write the results to "+resultPage)
	flag.DurationVar(&o.limit, "timeout", 4*time.Minute, "a test that runs longer counts as failed")
	flag.IntVar(&o.workers, "j", 2, "try `n` changes at once")
	flag.StringVar(&o.resume, "resume", "", "keep results in this `file`, and try only the changes that it lacks; results of another commit do not count")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: go run ./internal/mutate [flags] [ROW...]\n\n"+
			"Breaks requirements of the specification one at a time and checks that their tests notice it.\n"+
			"ROW is the id of a requirement in docs/spec, such as basic.07, or its beginning, such as basic.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.rows = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run tries the changes that the options choose and prints one line for each.
func run(ctx context.Context, o options) error {
	if o.write && (o.sample > 0 || len(o.rows) > 0) {
		return errors.New("-write needs a whole run: leave out -sample and the rows")
	}
	folder, err := fs.Sub(lists, "mutants")
	if err != nil {
		return err
	}
	all, err := readMutants(folder)
	if err != nil {
		return err
	}
	rows, err := docs.ReadRequirements(os.DirFS("."))
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return errors.New("docs/spec has no requirements: run this from the root of the repository")
	}
	chosen, err := chooseMutants(all, o)
	if err != nil {
		return err
	}
	tests := testsOfRows(rows)
	for i := range chosen {
		if chosen[i].tests == nil {
			chosen[i].tests = tests[chosen[i].row]
		}
	}
	commit := ""
	if o.resume != "" || o.write {
		if commit, err = readCommit(ctx); err != nil {
			return err
		}
	}
	if o.resume != "" {
		if o.log, err = openResultLog(o.resume, commit); err != nil {
			return err
		}
		defer o.log.file.Close()
	}
	results := tryAll(ctx, chosen, o)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted after %d of %d changes", len(results), len(chosen))
	}
	missed := 0
	for _, r := range results {
		if r.verdict != caught {
			missed++
		}
	}
	fmt.Printf("%d changes, %d noticed\n", len(results), len(results)-missed)
	if missed > 0 {
		return fmt.Errorf("%d of %d changes were not noticed by the tests of their requirement", missed, len(results))
	}
	if o.write {
		return os.WriteFile(resultPage, []byte(formatPage(results, commit)), 0o644)
	}
	return nil
}

// testsOfRows returns the tests that each row names, keyed by its id.
func testsOfRows(rows []docs.Requirement) map[string][]docs.TestName {
	tests := map[string][]docs.TestName{}
	for _, row := range rows {
		tests[row.ID] = docs.FindTests(row.Tests)
	}
	return tests
}

// tryAll tries the changes with o.workers at once, prints each result, and returns the results in
// the order of the changes. A sample may end before the last change.
func tryAll(ctx context.Context, chosen []mutant, o options) []result {
	var (
		mu      sync.Mutex
		next    int
		results = make([]*result, len(chosen))
		workers sync.WaitGroup
	)
	start := time.Now()
	takeNext := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(chosen) || ctx.Err() != nil || next > 0 && o.sample > 0 && time.Since(start) > o.sample {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range max(1, o.workers) {
		workers.Go(func() {
			for i, ok := takeNext(); ok; i, ok = takeNext() {
				r, isKnown := o.log.findResult(chosen[i])
				if !isKnown {
					r = tryMutant(ctx, chosen[i], o.limit)
				}
				if ctx.Err() != nil {
					return
				}
				if !isKnown {
					if err := o.log.addResult(r); err != nil {
						fmt.Fprintln(os.Stderr, "mutate: the result is not kept:", err)
					}
				}
				mu.Lock()
				results[i] = &r
				fmt.Printf("[%d/%d] %s\n", i+1, len(chosen), r)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	var tried []result
	for _, r := range results {
		if r != nil {
			tried = append(tried, *r)
		}
	}
	return tried
}

// chooseMutants returns the changes of the rows, in the order of the seed for a sample.
func chooseMutants(all []mutant, o options) ([]mutant, error) {
	if len(o.rows) > 0 {
		all = slices.DeleteFunc(all, func(m mutant) bool {
			return !slices.ContainsFunc(o.rows, func(row string) bool { return strings.HasPrefix(m.row, row) })
		})
		if len(all) == 0 {
			return nil, fmt.Errorf("no change belongs to %s: want the id of a requirement in docs/spec, such as basic.07", strings.Join(o.rows, " "))
		}
	}
	if o.sample <= 0 {
		return all, nil
	}
	if o.seed == "" {
		o.seed = fmt.Sprint(time.Now().UnixNano())
	}
	fmt.Printf("as many of %d changes as begin within %v; the same order again: -sample %v -seed %s\n", len(all), o.sample, o.sample, o.seed)
	sum := fnv.New64a()
	sum.Write([]byte(o.seed))
	rand.New(rand.NewPCG(sum.Sum64(), 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}
