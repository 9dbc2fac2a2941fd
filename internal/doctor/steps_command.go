package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// checkFolder checks the working folder.
func (w *examination) checkFolder() bool {
	dir := w.command.Dir
	if dir == "" {
		return true
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("working directory %q is a file, not a folder", dir)
	}
	if err != nil {
		w.reportFailure(err)
		return false
	}
	return w.reportStep(Step{Name: stepFolder, Status: OK, Detail: dir})
}

// checkEnvironment checks the variables that the definition sets.
func (w *examination) checkEnvironment() bool {
	c := w.command
	says := "inherited from this process"
	if c.CleanEnv {
		says = "a minimal one"
	}
	if names := slices.Sorted(maps.Keys(c.Env)); len(names) > 0 {
		says += ", with " + strings.Join(names, ", ")
	}
	if w.server.EnvFile == "" {
		return w.reportStep(w.warnOfPlaceholders(Step{Name: stepEnvironment, Status: OK, Detail: says}))
	}
	text, err := os.ReadFile(w.server.EnvFile)
	if err != nil {
		w.reportFailure(&envFileError{w.server.EnvFile, err})
		return false
	}
	s := Step{Name: stepEnvironment, Status: OK, Detail: says + ", from " + w.server.EnvFile}
	if missing := missingNames(string(text), c.Env); len(missing) > 0 {
		s.Status, s.Detail = Warning, says+"; of the file "+w.server.EnvFile+" these are missing: "+strings.Join(missing, ", ")
		s.Advice = "Correct the lines of " + w.server.EnvFile + " that set " + strings.Join(missing, ", ") + "."
	}
	return w.reportStep(w.warnOfPlaceholders(s))
}

// envFileError is an error of reading the file that holds the variables.
type envFileError struct {
	file string
	err  error
}

func (e *envFileError) Error() string {
	return fmt.Sprintf("the file with the environment's variables, %q, cannot be read: %v", e.file, withoutPath(e.err))
}

func (e *envFileError) Unwrap() error { return e.err }

// withoutPath strips the file name from an error.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

var envLine = lazyregexp.New(`(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=`)

// missingNames returns the variables that a file sets and env lacks.
func missingNames(file string, env map[string]string) []string {
	var missing []string
	for _, m := range envLine().FindAllStringSubmatch(file, -1) {
		if _, ok := env[m[1]]; !ok && !slices.Contains(missing, m[1]) {
			missing = append(missing, m[1])
		}
	}
	return missing
}

// placeholder matches values that examples use in place of a real one, and variable references that
// were not replaced.
var placeholder = lazyregexp.New(`^\$\{[^}]*\}$|^\$[A-Z_]+$|^<[^>]*>$|(?i)^(your|my)[-_ ].*|^x{3,}$|^change[-_ ]?me$|^\.{3}$|^…$|^todo$`)

// warnOfPlaceholders turns s into a warning if a variable holds a placeholder or a secret is empty.
func (w *examination) warnOfPlaceholders(s Step) Step {
	for _, name := range slices.Sorted(maps.Keys(w.command.Env)) {
		value := strings.TrimSpace(w.command.Env[name])
		empty := value == "" && secretmask.IsSecretName(name)
		if s.Status != OK || !empty && !placeholder().MatchString(value) {
			continue
		}
		s.Status = Warning
		s.Advice = "Give " + name + " its value in the server's environment."
		if empty {
			s.Detail += "; " + name + " is empty"
		} else {
			s.Detail += "; " + name + " holds a placeholder"
		}
	}
	return s
}

// locateProgram looks for the program.
func (w *examination) locateProgram() bool {
	file, err := findProgram(w.ctx, w.command)
	if err != nil {
		w.reportFailure(err)
		return false
	}
	w.programFile = file
	folders := searchPath(w.command)
	says := file
	if !isPath(w.command.Path) {
		says += " (PATH has " + formatCount(len(folders), "folder") + ")"
		if !slices.Contains(folders, filepath.Dir(file)) {
			says = file + " (not on PATH, but where the login shell or an installer has it)"
		}
	}
	return w.reportStep(Step{Name: stepCommand, Status: OK, Detail: says + batchFileNote(runtime.GOOS, file)})
}

// batchFileNote says how Windows runs a batch file.
func batchFileNote(system, file string) string {
	if ext := strings.ToLower(filepath.Ext(file)); system == "windows" && (ext == ".cmd" || ext == ".bat") {
		return ", a batch file that cmd.exe runs"
	}
	return ""
}

// examineCommand starts the server, waits for the handshake and inspects the server.
func (w *examination) examineCommand() {
	c := *w.command
	c.Stderr = io.Writer(&w.stderr)
	if own := w.command.Stderr; own != nil {
		c.Stderr = io.MultiWriter(&w.stderr, own)
	}
	d := w.startDial(c)
	defer d.closeDial()
	if !w.watchStart(d) {
		return
	}
	<-d.done
	if d.err != nil {
		w.reportFailure(d.err)
		return
	}
	if w.reportHandshake(d.client) && w.checkStdout() {
		w.inspectServer(d.client)
	}
}

// watchStart reports the start of the process and its first second while the handshake is in
// progress. It returns false if the examination must stop.
func (w *examination) watchStart(d *pendingDial) bool {
	select {
	case <-w.firstFrame:
	case <-d.done:
		select {
		case <-w.firstFrame: // the frame and the dial's end came together
		default:
			// A process may end before the first frame is written to it. Any other error without a
			// frame means that no process was started.
			if _, hasEnded := errors.AsType[*stdio.ExitError](d.err); !hasEnded {
				return true
			}
		}
	}
	w.startedAt = time.Now()
	if !w.reportStep(Step{Name: stepStart, Status: OK, Detail: "the process runs"}) {
		return false
	}
	second := time.NewTimer(w.startWatch)
	defer second.Stop()
	select {
	case <-second.C:
		return w.reportStep(Step{Name: stepFirst, Status: OK, Detail: "the process lives"})
	case <-d.done:
	}
	if d.err != nil {
		return true
	}
	return w.reportStep(Step{Name: stepFirst, Status: OK, Detail: "the server has answered before it was over"})
}

// firstSecond is long enough for most processes that fail at start to have ended.
const firstSecond = time.Second

// checkStdout checks that the server wrote only messages to its stdout.
func (w *examination) checkStdout() bool {
	lines := w.stdout.Lines()
	if len(lines) == 0 {
		return w.reportStep(Step{Name: stepStdout, Status: OK, Detail: "nothing but messages"})
	}
	return w.reportStep(Step{
		Name: stepStdout, Status: Warning, Detail: fmt.Sprintf("lines that are not messages, such as %q", shortenText(w.mask.maskText(lines[0]), 120)),
		Advice: adviseStdout,
	})
}

const adviseStdout = "Make the server write its logs to stderr: its stdout belongs to the protocol."

// describeExit says how the process reacted to the end of the connection.
func describeExit(child stdio.Child) (detail, advice string) {
	exit, ok := errors.AsType[*stdio.ExitError](child.ExitError())
	switch {
	case !ok || exit.State == nil:
		return "the process has been ended", ""
	case exit.State.ExitCode() >= 0:
		return "the process has ended by itself, with " + exit.State.String(), ""
	}
	return "the process did not end when its stdin did: it was ended with " + exit.State.String(), "Make the server exit when its standard input ends."
}
