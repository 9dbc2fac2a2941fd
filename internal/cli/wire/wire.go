// Package wire is dowel wire: the messages between clients, the running dowel and servers, joined
// into operations.
package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/journal/export"
	"github.com/dowel-mcp/dowel/internal/journal/filter"
	"github.com/spf13/cobra"
)

// Options are the flags of dowel wire.
type Options struct {
	frames  bool
	past    bool
	export  string
	as      string
	compare []uint
}

// NewCommand returns the command dowel wire.
func NewCommand(f *factory.Factory) *cobra.Command {
	var opts Options
	cmd := &cobra.Command{
		Use:   "wire [FILE.jsonl] [FILTER…]",
		Short: "Watch the calls of all clients, on both sides of dowel",
		Long: `Show what passes between clients, the running dowel and its servers, from now on until Ctrl-C. A line is one operation: a
call with all its rounds, questions and progress, on both sides. It is shown when it ends, and when it waits for an answer:

  ● done   ◆ waits for an answer of a user or a model   ○ failed   ◌ cancelled or forgotten   ✗ no message (print on stdout)

--frames shows each message. --past shows the messages that dowel has kept in memory (the newest 16 MiB), and ends. A file that
--export jsonl has written is shown instead of the running dowel. Secrets are masked before dowel keeps a message.

A filter has terms that must all hold:
  server:github  client:cursor  method:tools/call  tool:create_*    who, and what; * and ? stand for any characters
  status:error|tool-error       ok error tool-error pending asked cancelled late refused lost
  kind:request                  request response note batch stray
  leg:client  dir:in            client (or down) server (or up); in or out, seen from dowel
  era:legacy  revision:2025*    what the connection speaks
  dur:>500ms  size:>10k         also <, >= and <=
  since:10m  until:14:02        a time ago, of today, or a whole one
  op:81  id:7  conn:3           one operation, request id, or connection
  args.path:/etc*  result.isError:true  header.mcp-name:x           a value in a message
  body:text  body:/regexp/  "some text"                             a text in a message
A hyphen in front negates a term, | separates values, and ( … or … ) alternatives. Put -- before a filter that starts with a hyphen.`,
		Example: `  dowel wire
  dowel wire --past status:error server:github
  dowel wire --past --export jsonl since:10m > trouble.jsonl
  dowel wire trouble.jsonl 'dur:>1s' --as dowel`,
		RunE: func(cmd *cobra.Command, words []string) error {
			f.Parsed = true
			return runWire(cmd.Context(), f, opts, words)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&opts.frames, "frames", "f", false, "show each message instead of operations")
	flags.BoolVar(&opts.past, "past", false, "show what dowel has kept, and end")
	flags.StringVar(&opts.export, "export", "", "write the messages in this `format`: jsonl or har")
	flags.UintSliceVar(&opts.compare, "compare", nil, "show the difference of two operations that dowel has kept (`A,B`: numbers, as --json shows them)")
	flags.StringVar(&opts.as, "as", "", "write each call as a `command`: curl, dowel or go-test")
	return cmd
}

// runWire shows the journal of the running dowel or of a file.
func runWire(ctx context.Context, f *factory.Factory, opts Options, words []string) error {
	if opts.compare != nil {
		return runCompare(ctx, f, opts.compare, words)
	}
	source, isPast := opts.running(ctx), opts.past
	if len(words) > 0 && strings.HasSuffix(words[0], ".jsonl") {
		file, err := os.Open(words[0])
		if err != nil {
			return exit.Usagef("the recording cannot be read: %w", err)
		}
		defer file.Close()
		source, words, isPast = readRecording(file), words[1:], true
	}
	accept, err := filter.Parse(strings.Join(words, " "), time.Now())
	if err != nil {
		return exit.Usagef("the filter %q: %w", strings.Join(words, " "), err)
	}
	out, err := newWriter(f, opts)
	if err != nil {
		return err
	}
	view := newView(accept, out)
	for l, err := range source {
		switch {
		case err != nil && !errors.Is(err, control.ErrNotRunning):
			return exit.ConnectError{Server: "the running dowel", Err: err}
		case err != nil:
			return err
		}
		view.addLine(l)
	}
	view.writeRest()
	if isPast && view.shown == 0 && !f.JSON && ctx.Err() == nil {
		fmt.Fprintln(f.Stderr, f.Stderr.Wrapped(view.describeNothing()))
	}
	var interruption *exit.Interruption
	if cause := context.Cause(ctx); cause != nil && (opts.past || !errors.As(cause, &interruption)) {
		return cause
	}
	return nil // the end of the file, or stopped by Ctrl-C
}

// running returns the lines of the running dowel.
func (o Options) running(ctx context.Context) iter.Seq2[journal.Line, error] {
	past := o.past || o.export == "har"
	return factory.RunningDaemon().Journal(ctx, control.JournalOptions{Kept: past, Follow: !past})
}

// maxLine limits a line of a recording.
const maxLine = 8 << 20

// readRecording returns the lines of a file that --export jsonl has written.
func readRecording(file *os.File) iter.Seq2[journal.Line, error] {
	return func(yield func(journal.Line, error) bool) {
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, maxLine)
		for number := 1; lines.Scan(); number++ {
			l, err := journal.ParseLine(lines.Bytes(), number)
			if err != nil {
				err = exit.Usagef("%s: %w", file.Name(), err)
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(journal.Line{}, exit.Usagef("%s: %w", file.Name(), err))
		}
	}
}

// writer writes the rows that a filter has accepted.
type writer interface {
	writeOperation(o *journal.Operation, frames []*journal.Frame, line journal.Line)
	writeFrame(f *journal.Frame, line journal.Line)
	// writeGap writes that records are lost between two times, of which either may be zero.
	writeGap(g journal.Gap, from, to time.Time)
	// writeEnd writes the end of the output, after the last row.
	writeEnd()
	// wants reports whether frames are rows, and whether operations are.
	wants() (frames, operations bool)
}

// newWriter returns the writer that the flags choose.
func newWriter(f *factory.Factory, o Options) (writer, error) {
	switch {
	case o.export != "" && o.as != "":
		return nil, exit.Usagef("give either --export or --as, not both")
	case o.export == "jsonl":
		return &jsonWriter{f: f, frames: true, operations: true}, nil
	case o.export == "har":
		return &harWriter{f: f}, nil
	case o.export != "":
		return nil, exit.Usagef("--export %s: want jsonl or har", o.export)
	case o.as != "" && !slices.Contains(export.CommandNames, o.as):
		return nil, exit.Usagef("--as %s: want %s", o.as, strings.Join(export.CommandNames, ", "))
	case o.as != "":
		return &commandWriter{f: f, as: o.as}, nil
	case f.JSON:
		return &jsonWriter{f: f, frames: o.frames, operations: !o.frames}, nil
	}
	return &textWriter{f: f, frames: o.frames}, nil
}

// jsonWriter writes rows as lines of JSON.
type jsonWriter struct {
	f                  *factory.Factory
	frames, operations bool
}

func (w *jsonWriter) wants() (frames, operations bool) { return w.frames, w.operations }

func (w *jsonWriter) writeOperation(_ *journal.Operation, _ []*journal.Frame, l journal.Line) {
	factory.WriteJSONLine(w.f.Stdout, l)
}

func (w *jsonWriter) writeFrame(_ *journal.Frame, l journal.Line) {
	factory.WriteJSONLine(w.f.Stdout, l)
}

func (w *jsonWriter) writeGap(g journal.Gap, _, _ time.Time) {
	factory.WriteJSONLine(w.f.Stdout, journal.GapLine(g))
}

func (w *jsonWriter) writeEnd() {}
