// Command dowel-data serves the tables in some folders: package data says how.
package main

import (
	"context"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/dowel-mcp/dowel/servers/data"
	"github.com/dowel-mcp/dowel/servers/internal/program"
)

// memoryLimit makes the garbage collector work harder before the process needs 256 MiB.
const memoryLimit = 160 << 20

func main() {
	debug.SetMemoryLimit(memoryLimit)
	var o data.Options
	program.Main("dowel-data", "Serves the CSV, TSV, JSON lines and Parquet files in some folders.", options(&o),
		func(context.Context) (program.Server, error) { return data.New(o) })
}

// options are the options of the command line, which set o.
func options(o *data.Options) []program.Option {
	return []program.Option{
		{Name: "roots", Description: "the folders, separated as in PATH, default the current one", Set: func(value string) error {
			o.Roots = filepath.SplitList(value)
			return nil
		}},
		{Name: "timeout", Description: "of each call, default " + data.DefaultTimeout.String(), Set: func(value string) (err error) {
			o.Timeout, err = program.ParseInterval(value, 100*time.Millisecond)
			return err
		}},
		{Name: "poll", Description: "how often the files are compared for changes, default " + data.DefaultPoll.String(), Set: func(value string) (err error) {
			o.Poll, err = program.ParseInterval(value, 100*time.Millisecond)
			return err
		}},
	}
}
