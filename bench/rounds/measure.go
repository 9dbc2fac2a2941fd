package rounds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/bench/work"
)

// Command is the first argument of a process that calls [Measure].
const Command = "measure"

// Sample is one measurement: its result, or the reason why the result is missing.
type Sample struct {
	Item       string      `json:"item"`
	Contestant string      `json:"contestant"`
	Round      int         `json:"round"`
	Result     work.Result `json:"result,omitempty"`
	Unable     string      `json:"unable,omitempty"` // why the contestant cannot do the item
	Failed     string      `json:"failed,omitempty"` // the error of the measurement
}

// Measure measures one item for one contestant and prints the [Sample] as one line of JSON. args
// are the arguments after Command.
func Measure(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	name := flags.String("item", "", "")
	contestant := flags.String("contestant", "", "")
	var o work.Options
	flags.DurationVar(&o.Time, "time", 0, "")
	flags.StringVar(&o.Binaries, "binaries", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, item := range work.All() {
		if item.Name == *name {
			return measure(ctx, item, *contestant, o)
		}
	}
	return fmt.Errorf("unknown item %q", *name)
}

func measure(ctx context.Context, item work.Item, contestant string, o work.Options) error {
	s := Sample{Item: item.Name, Contestant: contestant}
	result, err := item.Measure(ctx, contestant, o)
	unable := peer.Unable("")
	switch {
	case errors.As(err, &unable):
		s.Unable = string(unable)
	case err != nil:
		return err
	default:
		s.Result = result
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// setupTimeout bounds the time of a measurement, beyond the time in which it repeats its operation.
const setupTimeout = 90 * time.Second

// sample runs Measure in a child process and returns its sample. The process keeps its temporary
// files in folder, which the caller must remove. The error is not nil only if ctx ends or the child
// cannot be run at all.
func sample(ctx context.Context, item work.Item, contestant string, o work.Options, folder string) (s Sample, err error) {
	s = Sample{Item: item.Name, Contestant: contestant}
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	limited, cancel := context.WithTimeout(ctx, setupTimeout+3*o.Time)
	defer cancel()
	cmd := exec.CommandContext(limited, self, Command, "-item", item.Name, "-contestant", contestant, "-time", o.Time.String(), "-binaries", o.Binaries)
	cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	// Its servers may hold its standard error open. They exit after it, so Wait may need a moment.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, 5*time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &s)
	}
	switch {
	case ctx.Err() != nil:
		return s, context.Cause(ctx)
	case limited.Err() != nil:
		s.Failed = "It did not finish in time. " + brief(errs.String())
	case err != nil:
		s.Failed = err.Error() + ". " + brief(errs.String())
	}
	return s, nil
}

// brief returns the beginning of a process's standard error on one line. The message of a panic
// comes first.
func brief(s string) string {
	const most = 300
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = s[:most] + " …"
	}
	return s
}
