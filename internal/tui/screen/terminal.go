package screen

import (
	"io"
	"os/exec"
	"time"
)

// rendererPause is the time for Bubble Tea 2.1 to end its renderer before something else uses the
// terminal. That ends on a goroutine of its own and stops a ticker, which would be the ticker of
// the next renderer if the terminal came back at once. Then the conversation would not be drawn any
// more (issue 1778 of Bubble Tea).
const rendererPause = 100 * time.Millisecond

// terminalProgram is a program that gets the terminal. It implements [tea.ExecCommand].
type terminalProgram struct{ *exec.Cmd }

// SetStdin implements [tea.ExecCommand].
func (p terminalProgram) SetStdin(in io.Reader) { p.Stdin = in }

// SetStdout implements [tea.ExecCommand].
func (p terminalProgram) SetStdout(out io.Writer) { p.Stdout = out }

// SetStderr implements [tea.ExecCommand].
func (p terminalProgram) SetStderr(out io.Writer) { p.Stderr = out }

// Run runs the program until it ends.
func (p terminalProgram) Run() error {
	time.Sleep(rendererPause)
	return p.Cmd.Run()
}
