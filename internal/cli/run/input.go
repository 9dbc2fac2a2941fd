package run

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/attach"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// readTask is what the model is told: the task, what is piped in, and the files.
func readTask(ctx context.Context, f *factory.Factory, opts *Options, words []string) (content []mcp.Content, err error) {
	task := strings.Join(words, " ")
	whole := task == "-"
	if whole {
		task = ""
	}
	if whole || isPiped(f) {
		piped, err := readPiped(ctx, f, whole)
		if err != nil {
			return nil, err
		}
		task = strings.TrimSpace(task + "\n\n" + strings.TrimSpace(piped))
	}
	for _, path := range opts.files {
		blocks, err := attach.File(path)
		if err != nil {
			return nil, exit.Usagef("-f %s: %w", path, err)
		}
		content = append(content, blocks...)
	}
	switch {
	case strings.TrimSpace(task) != "":
		return append(content, mcp.Text(task)), nil
	case whole:
		return nil, exit.Usagef("standard input is empty: pipe the task into it")
	}
	return nil, exit.Usagef(`there is no task: dowel run "What is to be done"`)
}

// isPiped reports whether something is piped into standard input, or it is a file.
func isPiped(f *factory.Factory) bool {
	file, ok := f.Stdin.(*os.File)
	if !ok {
		return f.Stdin != nil
	}
	info, err := file.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0) // Node makes its pipes of sockets
}

// readPiped reads standard input to its end.
func readPiped(ctx context.Context, f *factory.Factory, whole bool) (string, error) {
	if whole && term.Terminal(f.Stdin) != nil {
		f.Notice("Write the task, and end it with Ctrl-D.")
	}
	type read struct {
		text []byte
		err  error
	}
	got := make(chan read, 1)
	go func() { // which ends with the process at last, where the context ends before
		text, err := io.ReadAll(io.LimitReader(f.Stdin, attach.MaxText+1))
		got <- read{text, err}
	}()
	patient := time.NewTimer(pipeWarningDelay)
	defer patient.Stop()
	for {
		select {
		case r := <-got:
			return attach.Text("standard input", r.text, r.err)
		case <-patient.C:
			if term.Terminal(f.Stdin) == nil {
				f.Warn("standard input is still open, and what comes there belongs to the task: close it, or keep it out with < /dev/null")
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// pipeWarningDelay is after what time it is told that standard input is waited for.
const pipeWarningDelay = 3 * time.Second
