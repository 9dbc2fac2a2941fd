//go:build linux

// Command scale measures the cost of sessions, subscriptions, tasks and replicas of dowel, with
// real processes: dowel up --cluster, a NATS server, and this process as all clients and as the
// server behind the gateway. It writes the tables of docs/scale.md.
//
//	go run ./scale [-o FILE] [-only REGEXP] [-sizes FACTOR]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/bench/report"
	"github.com/dowel-mcp/dowel/bench/rounds"
	"github.com/dowel-mcp/dowel/internal/programtest"
)

func main() {
	if config := os.Getenv(natsVariable); config != "" {
		runNATS(config)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// A section measures something and describes it in Markdown.
type section struct {
	name    string
	measure func(context.Context, *setting) (text string, err error)
}

// setting holds the settings and results that all sections share.
type setting struct {
	folder string  // for everything that they write
	dowel  string  // the program
	factor float64 // of all sizes
	times  times
	costs  costs // what the sections found, for the model
}

// times are how long parts of the measurements take.
type times struct {
	settle time.Duration // a cluster rests before it is measured, so that garbage is collected and files are written
	idle   time.Duration // idle replicas are watched; all leases are renewed several times
	rate   time.Duration // a rate is measured
	rounds int           // of measurements that are compared; within a round each is measured in turn
	many   int           // rounds for a difference of a few per cent
}

func run(ctx context.Context) error {
	out := flag.String("o", "out.md", "the file to write the tables to, between its two marks; or a new one")
	only := flag.String("only", "", "a regular expression for the names of sections, which are on standard error")
	factor := flag.Float64("sizes", 1, "the factor of all sizes, such as 0.1 for a quick look")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if err := report.Check(*out, tool); err != nil {
		return err
	}
	s := &setting{factor: *factor, times: times{settle: 5 * time.Second, idle: 20 * time.Second, rate: 2 * time.Second, rounds: 9, many: 48}}
	if s.folder, err = os.MkdirTemp("", "dowel-scale-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.folder)
	if s.dowel, err = programtest.Build(s.folder, ".."); err != nil {
		return err
	}
	text := "Measured on " + rounds.Machine() + ".\n"
	for _, part := range sections {
		if !pattern.MatchString(part.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, part.name)
		measured, err := part.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, errors.Join(err, context.Cause(ctx)))
		}
		text += "\n" + strings.TrimSpace(measured) + "\n"
	}
	return report.WriteFile(*out, tool, []byte(text))
}

const tool = "scale"

var sections = []section{
	{"sessions", measureSessions},
	{"streams", measureStreams},
	{"listens", measureListens},
	{"live tasks", measureLiveTasks},
	{"stored tasks", measureStoredTasks},
	{"replicas", measureReplicas},
	{"tasks after a restart", measureRestart},
	{"a cluster beside none", measureClusterCost},
	{"quarter cores", measureQuarters},
	{"model", describeModel},
}
