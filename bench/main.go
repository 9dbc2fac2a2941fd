// Command bench compares dowel with other implementations of the protocol (peers) and with the
// least code that does the same work (the floor). It writes tables and a plot.
//
//	go run . [-rounds 9] [-time 300ms] [-only REGEXP] [-json FILE] [-from FILE] [-o FILE] [-svg FILE]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/bench/report"
	"github.com/dowel-mcp/dowel/bench/rounds"
	"github.com/dowel-mcp/dowel/bench/side"
	"github.com/dowel-mcp/dowel/bench/work"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the benchmark. bench starts itself as the processes that measure and serve, so run first
// looks for their commands; only the benchmark itself handles signals.
func run() error {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case side.Command:
			return side.Serve(os.Args[2:])
		case rounds.Command:
			return rounds.Measure(context.Background(), os.Args[2:])
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return bench(ctx)
}

// line holds the flags of the command line.
type line struct {
	rounds              int
	time                time.Duration
	only                string
	json, from, o, plot string
}

func bench(ctx context.Context) error {
	var l line
	flag.IntVar(&l.rounds, "rounds", 9, "how many rounds; medians count")
	flag.DurationVar(&l.time, "time", 300*time.Millisecond, "how long each measurement repeats its operation")
	flag.StringVar(&l.only, "only", "", "a regular expression for the names of what is measured, such as ^call/memory; they are on standard error")
	flag.StringVar(&l.json, "json", "", "a file to write all samples to")
	flag.StringVar(&l.from, "from", "", "a file that -json wrote: nothing is measured, its samples are reported")
	flag.StringVar(&l.o, "o", "out.md", "the file to write the tables to, between its two marks; or a new one")
	flag.StringVar(&l.plot, "svg", "", "a file to write the plot to")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: bench takes flags only, see -help", flag.Arg(0))
	}
	items, err := chosen(l.only)
	if err != nil {
		return err
	}
	if err := report.Check(l.o, "bench"); err != nil {
		return err
	}
	result, err := l.samples(ctx, items)
	if err != nil {
		return err
	}
	return l.write(result, items)
}

func chosen(only string) ([]work.Item, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	items := slices.DeleteFunc(work.All(), func(i work.Item) bool { return !pattern.MatchString(i.Name) })
	if len(items) == 0 {
		return nil, fmt.Errorf("-only %s matches no item: want a regular expression for names such as call/memory", only)
	}
	return items, nil
}

func (l line) samples(ctx context.Context, items []work.Item) (result rounds.Run, err error) {
	if l.from != "" {
		data, err := os.ReadFile(l.from)
		if err != nil {
			return result, err
		}
		return result, json.Unmarshal(data, &result)
	}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return result, err
	}
	defer os.RemoveAll(folder)
	if slices.ContainsFunc(items, func(i work.Item) bool { return i.Binaries }) {
		if err := work.Build(ctx, folder); err != nil {
			return result, err
		}
	}
	return rounds.Do(ctx, items, l.rounds, work.Options{Time: l.time, Binaries: folder}, os.Stderr)
}

func (l line) write(result rounds.Run, items []work.Item) error {
	var errs []error
	if l.json != "" {
		data, err := json.MarshalIndent(result, "", "\t")
		errs = append(errs, err, os.WriteFile(l.json, data, 0o644))
	}
	link := ""
	if l.plot != "" {
		errs = append(errs, report.Plot(l.plot, result, items))
		var err error
		link, err = filepath.Rel(filepath.Dir(l.o), l.plot)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, report.WriteFile(l.o, "bench", report.Markdown(result, items, filepath.ToSlash(link))))...)
}
