package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
	"github.com/dowel-mcp/dowel/server"
)

// How long a call without a timeout waits if it reads the output of the running command, or
// interrupts it.
const (
	readTimeout      = 10 * time.Second
	interruptTimeout = 5 * time.Second
)

const description = `Runs a command in a shell (bash) that keeps its working folder, variables and background processes between calls.
Omit shell to open a new shell. The result has its handle: pass it to every further call of this conversation.
stdin is empty and there is no terminal. stdout and stderr are returned as one text.
A command that takes longer than timeout keeps running: call again with an empty command to wait for it and read more output, with the command ctrl+c to interrupt it, or with restart to end the shell and open a new one.`

type runIn struct {
	Command string   `json:"command,omitzero" doc:"The command, as typed at a prompt; may have many lines. Empty: wait for the running command and read more output. ctrl+c: interrupt it" maxLength:"262144"`
	Shell   string   `json:"shell,omitzero" doc:"The handle of a shell, from an earlier result. Omit it to open a new shell" maxLength:"64"`
	Restart bool     `json:"restart,omitzero" doc:"Before the command, end the shell with everything that runs in it, and open a new one under the same handle"`
	Timeout *float64 `json:"timeout" doc:"Seconds to wait for the command" minimum:"0" maximum:"3600"`
}

// State is the state of a shell.
type State string

// The states of a shell.
const (
	Idle    State = "idle"    // the command has ended
	Running State = "running" // a command runs
	Ended   State = "ended"   // the shell has ended
)

// Result is the result of the tool run.
type Result struct {
	Shell      string `json:"shell" doc:"The handle of the shell, for further calls"`
	State      State  `json:"state" enum:"idle,running,ended" doc:"idle: the command has ended; running: it still runs; ended: the shell itself has ended"`
	ExitStatus *int   `json:"exitStatus,omitzero" doc:"The exit status of the command, or of the shell if it has ended; absent if the command still runs or the status is unknown"`
	Output     string `json:"output" doc:"The output since the last result, stdout and stderr in one"`
	Omitted    int    `json:"omitted" doc:"The number of characters omitted in the middle of the output"`
	Folder     string `json:"folder,omitzero" doc:"The shell's working folder"`
	Note       string `json:"note,omitzero" doc:"What happened, and what to do next"`
}

func (s *Server) addTool() {
	text := description
	if s.program.note != "" {
		text += "\nNote: " + s.program.note + "."
	}
	if s.opts.Sandbox {
		text += "\nCommands run in a sandbox: they can write to " + s.opts.Dir + " and /tmp only"
		if s.opts.Network {
			text += "."
		} else {
			text += ", and have no network."
		}
	}
	out, err := schema.ForOutput[Result]()
	if err != nil {
		panic(err) // only a mistake in the type Result can cause this
	}
	server.Tool(s.Server, "run", text, s.callRun, server.ToolOptions{Title: "Run a command", Annotations: annotations, OutputSchema: out.JSON()})
}

func (s *Server) callRun(ctx context.Context, in runIn) (*mcp.CallToolResult, error) {
	if strings.ContainsRune(in.Command, 0) {
		return nil, errors.New("the command contains a NUL character, which a shell cannot read: write \\0 instead, in a call of printf for example")
	}
	sh, err := s.shellFor(ctx, in)
	if err != nil {
		return nil, err
	}
	defer s.leaveShell(sh)
	if sh.isGone() {
		return sh.reportEnd(strings.TrimSpace(in.Command) == "")
	}
	switch strings.ToLower(strings.TrimSpace(in.Command)) {
	case "":
		return s.waitResult(ctx, sh, sh.currentCommand(), in.timeoutOr(readTimeout), sh.countPrinted())
	case "ctrl+c", "ctrl-c", "^c", "\x03":
		c := sh.currentCommand()
		if c != nil {
			sh.interruptCommand(c)
		}
		return s.waitResult(ctx, sh, c, in.timeoutOr(interruptTimeout), sh.countPrinted())
	}
	c, err := sh.runCommand(in.Command)
	if err != nil {
		return nil, err
	}
	result, err := s.waitResult(ctx, sh, c, in.timeoutOr(s.opts.Timeout), c.printed)
	if err != nil && ctx.Err() != nil { // the caller has cancelled the call
		sh.interruptCommand(c)
		if in.Shell == "" {
			sh.endShell("its first call was cancelled") // no client knows its handle
		}
	}
	return result, err
}

// shellFor returns the shell that the call names, or a new one if it names none. The caller must
// call leaveShell.
func (s *Server) shellFor(ctx context.Context, in runIn) (*shell, error) {
	principal := ""
	if req := server.RequestFrom(ctx); req != nil {
		principal = req.Principal.ID
	}
	if in.Shell == "" {
		return s.openShell(ctx, principal, "")
	}
	sh, err := s.enterShell(principal, in.Shell)
	if err != nil || !in.Restart {
		return sh, err
	}
	defer s.leaveShell(sh)
	return s.restartShell(ctx, sh)
}

func (in runIn) timeoutOr(usual time.Duration) time.Duration {
	if in.Timeout == nil {
		return usual
	}
	return time.Duration(*in.Timeout * float64(time.Second))
}

// waitResult waits for a command, at most for timeout, and returns its output and state. c is nil
// if no command runs. Meanwhile it sends the output as progress notifications, without the first
// seen characters that the shell has ever printed.
func (s *Server) waitResult(ctx context.Context, sh *shell, c *command, timeout time.Duration, seen int) (*mcp.CallToolResult, error) {
	err := sh.awaitCommand(ctx, c, timeout, seen, func(elapsed time.Duration, printed string) {
		server.Progress(ctx, elapsed.Seconds(), timeout.Seconds(), printed)
	})
	if err != nil {
		return nil, err
	}
	if sh.isGone() {
		return sh.reportEnd(true)
	}
	return sh.resultOf(c).callResult()
}

// resultOf returns the new output and the state of a command. c is nil if no command runs.
func (sh *shell) resultOf(c *command) Result {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r := Result{Shell: sh.handle, State: Idle, Folder: sh.folder}
	r.Output, r.Omitted = sh.unread.takeNew()
	r.addNote(sh.note)
	sh.note = ""
	if c == nil {
		r.addNote("no command is running")
		return r
	}
	if c.before != nil {
		r.addNote(fmt.Sprintf("the previous command ended with exit status %d; this output begins with the rest of its output", c.before.status))
		c.before = nil
	}
	switch {
	case sh.running != c:
		r.ExitStatus = new(c.status)
		if c.interrupt {
			r.addNote("the command was interrupted")
		}
		if sh.finished == c {
			sh.finished = nil
		}
		return r
	case c.interrupt:
		r.addNote("the command has not reacted to the interrupt yet: call again with an empty command for more output, with the command ctrl+c to interrupt it again, or with restart to end it")
	default:
		r.addNote(fmt.Sprintf("the command is still running after %v: call again with an empty command for more output, with the command ctrl+c to interrupt it, or with restart to end it", time.Since(c.began).Round(10*time.Millisecond)))
	}
	r.State = Running
	return r
}

func (r *Result) addNote(note string) {
	if r.Note != "" && note != "" {
		r.Note += "; "
	}
	r.Note += note
}

// reportEnd reports how the shell ended: as a result if the call waited for it (awaited), otherwise
// as an error, because the call's command was not run.
func (sh *shell) reportEnd(awaited bool) (*mcp.CallToolResult, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r := Result{Shell: sh.handle, State: Ended, ExitStatus: sh.ended.status}
	r.Output, r.Omitted = sh.unread.takeNew()
	r.Note = fmt.Sprintf("the shell has ended (%s), with everything that ran in it: call with this handle and restart, or without a handle, to open a new one", sh.ended.how)
	if awaited {
		return r.callResult()
	}
	if r.Output != "" {
		return nil, fmt.Errorf("the command was not run: %s. The shell's last output was:\n%s", r.Note, r.Output)
	}
	return nil, fmt.Errorf("the command was not run: %s", r.Note)
}

// callResult returns the result as text for reading and structured content for programs.
func (r Result) callResult() (*mcp.CallToolResult, error) {
	raw, err := schema.Encode(r)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(r.formatSummary())}, StructuredContent: json.RawMessage(raw)}, nil
}

func (r Result) formatSummary() string {
	var notes []string
	if r.ExitStatus != nil && r.State != Ended {
		notes = append(notes, fmt.Sprintf("exit status %d", *r.ExitStatus))
	}
	if r.Note != "" {
		notes = append(notes, r.Note)
	}
	text := r.Output
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	folder := ""
	if r.Folder != "" {
		folder = " in " + r.Folder
	}
	return text + fmt.Sprintf("[shell %s%s: %s]", r.Shell, folder, strings.Join(notes, "; "))
}
