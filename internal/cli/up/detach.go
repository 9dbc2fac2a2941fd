package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/pflag"
)

// detachedArgs returns the arguments of a dowel up with the given flags, but without --detach.
func detachedArgs(flags *pflag.FlagSet) []string {
	args := []string{"up"}
	flags.Visit(func(flag *pflag.Flag) {
		if flag.Name == "detach" {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			for _, value := range list.GetSlice() {
				args = append(args, "--"+flag.Name+"="+value)
			}
			return
		}
		args = append(args, "--"+flag.Name+"="+flag.Value.String())
	})
	return args
}

// Detached is the JSON output of dowel up --detach.
type Detached struct {
	PID     int    `json:"pid"`
	Gateway string `json:"gateway"`
	Log     string `json:"log"`
}

// startDetached starts dowel up in a process of its own and waits until it serves.
func startDetached(ctx context.Context, f *factory.Factory, opts Options, args []string) error {
	running := control.NewClient(opts.SocketPath())
	if s, err := running.Status(ctx); err == nil && s.Gateway != "" && !s.Ending {
		return fmt.Errorf("%w: process %d, see dowel status; dowel down ends it", control.ErrRunning, s.PID)
	}
	log, err := createLog()
	if err != nil {
		return err
	}
	defer log.Close()
	child, exited, err := startInBackground(args, log)
	if err != nil {
		return err
	}
	s, err := awaitService(ctx, running, child.Pid, exited)
	if err != nil {
		if ctx.Err() != nil {
			_ = child.Signal(os.Interrupt) // Ctrl-C ends what it has started
			<-exited
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w:\n%s\nThe whole log is %s", err, lastLines(log.Name()), log.Name())
	}
	if f.JSON {
		return f.WriteValue(Detached{s.PID, s.Gateway, log.Name()})
	}
	f.WriteMessage("dowel runs in the background, process %d. Its gateway is at %s, its log is %s.", s.PID, s.Gateway, log.Name())
	f.WriteMessage("dowel status and dowel console show the servers, dowel down ends it.")
	return nil
}

// createLog creates the log of the detached dowel. The log of the one before stays as up.log.1.
func createLog() (*os.File, error) {
	folder := factory.StateDir()
	if folder == "" {
		return nil, errors.New("dowel does not know where to put its log: set HOME or XDG_STATE_HOME")
	}
	path := filepath.Join(folder, "up.log")
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		if err = os.Rename(path, path+".1"); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the log %s cannot be written: %w; set XDG_STATE_HOME to a folder that dowel can write to", path, err)
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// startInBackground starts dowel in a session of its own. exited is closed when that
// dowel has ended.
func startInBackground(args []string, log *os.File) (child *os.Process, exited <-chan struct{}, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, backgroundAttributes()
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("dowel could not start itself: %w", err)
	}
	done := make(chan struct{})
	go func() { // ends with the process; it outlives this command
		_ = cmd.Wait()
		close(done)
	}()
	return cmd.Process, done, nil
}

// awaitService waits until the process serves its gateway.
func awaitService(ctx context.Context, running *control.Client, pid int, exited <-chan struct{}) (control.Status, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-exited:
			cancel(errors.New("dowel could not start in the background"))
		case <-ctx.Done():
		}
	}()
	return running.AwaitStatus(ctx, func(s control.Status, err error) bool { return err == nil && s.PID == pid && s.Gateway != "" })
}

// shownLines limits the lines of the log in an error.
const shownLines = 10

// lastLines returns the end of a log, without control characters.
func lastLines(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 1<<14 {
		_, _ = f.Seek(-1<<14, io.SeekEnd)
	}
	text, _ := io.ReadAll(f)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-shownLines):]
	for i, line := range lines {
		lines[i] = "  " + term.Line(line)
	}
	return strings.Join(lines, "\n")
}
