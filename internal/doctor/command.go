package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/transport/stdio"
)

// folder looks at the working folder.
func (w *walk) folder() bool {
	dir := w.command.Dir
	if dir == "" {
		return true
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("working directory %q is a file, not a folder", dir)
	}
	if err != nil {
		w.fail(err)
		return false
	}
	return w.report(Step{Name: stepFolder, Status: OK, Detail: dir})
}

// environment looks at the variables that the definition sets.
func (w *walk) environment() bool {
	c := w.command
	says := "that of this process"
	if c.CleanEnv {
		says = "a minimal one"
	}
	if names := slices.Sorted(maps.Keys(c.Env)); len(names) > 0 {
		says += ", with " + strings.Join(names, ", ")
	}
	if w.p.EnvFile == "" {
		return w.report(w.doubtful(Step{Name: stepEnvironment, Status: OK, Detail: says}))
	}
	text, err := os.ReadFile(w.p.EnvFile)
	if err != nil {
		w.fail(&envFileError{w.p.EnvFile, err})
		return false
	}
	s := Step{Name: stepEnvironment, Status: OK, Detail: says + ", from " + w.p.EnvFile}
	if missing := missingNames(string(text), c.Env); len(missing) > 0 {
		s.Status, s.Detail = Warning, says+"; of the file "+w.p.EnvFile+" these are missing: "+strings.Join(missing, ", ")
		s.Advice = "Correct the lines of " + w.p.EnvFile + " that set " + strings.Join(missing, ", ") + "."
	}
	return w.report(w.doubtful(s))
}

// envFileError says that the file with the variables cannot be read.
type envFileError struct {
	file string
	err  error
}

func (e *envFileError) Error() string {
	return fmt.Sprintf("the file with the environment's variables, %q, cannot be read: %v", e.file, reason(e.err))
}

func (e *envFileError) Unwrap() error { return e.err }

// reason is an error of a file without the file's name.
func reason(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

var envLine = regexp.MustCompile(`(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=`)

// missingNames returns the variables that a file sets and the environment lacks.
func missingNames(file string, env map[string]string) []string {
	var missing []string
	for _, m := range envLine.FindAllStringSubmatch(file, -1) {
		if _, ok := env[m[1]]; !ok && !slices.Contains(missing, m[1]) {
			missing = append(missing, m[1])
		}
	}
	return missing
}

// placeholder is what examples hold where a value belongs, or a variable that nobody has replaced.
var placeholder = regexp.MustCompile(`^\$\{[^}]*\}$|^\$[A-Z_]+$|^<[^>]*>$|(?i)^(your|my)[-_ ].*|^x{3,}$|^change[-_ ]?me$|^\.{3}$|^…$|^todo$`)

// doubtful makes a warning of the step where a variable has a value that cannot be meant.
func (w *walk) doubtful(s Step) Step {
	for _, name := range slices.Sorted(maps.Keys(w.command.Env)) {
		value := strings.TrimSpace(w.command.Env[name])
		empty := value == "" && secretName.MatchString(name)
		if s.Status != OK || !empty && !placeholder.MatchString(value) {
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

// program looks for the program.
func (w *walk) program() bool {
	file, err := find(w.ctx, w.command)
	if err != nil {
		w.fail(err)
		return false
	}
	w.file = file
	folders := searchPath(w.command)
	says := file
	if !isPath(w.command.Path) {
		says += " (PATH has " + plural(len(folders), "folder") + ")"
		if !slices.Contains(folders, filepath.Dir(file)) {
			says = file + " (not on PATH, but where the login shell or an installer has it)"
		}
	}
	return w.report(Step{Name: stepCommand, Status: OK, Detail: says + wrapping(runtime.GOOS, file)})
}

// wrapping says how Windows runs what is no program of its own.
func wrapping(system, file string) string {
	if ext := strings.ToLower(filepath.Ext(file)); system == "windows" && (ext == ".cmd" || ext == ".bat") {
		return ", a batch file that cmd.exe runs"
	}
	return ""
}

// run starts the server and talks to it.
func (w *walk) run() {
	c := *w.command
	c.Stderr = io.Writer(&w.stderr)
	if own := w.command.Stderr; own != nil {
		c.Stderr = io.MultiWriter(&w.stderr, own)
	}
	d := w.dial(c)
	defer d.end()
	if !w.started(d) {
		return
	}
	<-d.done
	if d.err != nil {
		w.fail(d.err)
		return
	}
	if w.greeted(d.client) && w.clean() {
		w.know(d.client)
	}
}

// started sees the process through its first second, while the handshake is under way. It reports whether to go on.
func (w *walk) started(d *dialing) bool {
	select {
	case <-w.begun:
	case <-d.done:
		select {
		case <-w.begun: // both have come
		default:
			return true
		}
	}
	w.running = time.Now()
	if !w.report(Step{Name: stepStart, Status: OK, Detail: "the process runs"}) {
		return false
	}
	second := time.NewTimer(firstSecond)
	defer second.Stop()
	select {
	case <-second.C:
		return w.report(Step{Name: stepFirst, Status: OK, Detail: "the process lives"})
	case <-d.done:
	}
	if d.err != nil {
		return true
	}
	return w.report(Step{Name: stepFirst, Status: OK, Detail: "the server has answered before it was over"})
}

// firstSecond is when a process that does not start properly has ended, mostly.
const firstSecond = time.Second

// clean looks at what the server wrote to its stdout.
func (w *walk) clean() bool {
	stray := w.strays.Lines()
	if len(stray) == 0 {
		return w.report(Step{Name: stepStdout, Status: OK, Detail: "nothing but messages"})
	}
	return w.report(Step{
		Name: stepStdout, Status: Warning, Detail: fmt.Sprintf("lines that are no messages, such as %q", shortened(w.mask.text(stray[0]), 120)),
		Advice: adviseStdout,
	})
}

const adviseStdout = "Make the server write its logs to stderr: its stdout belongs to the protocol."

// ended says how the process took the end of the connection.
func ended(child *stdio.Child) (detail, advice string) {
	exit, ok := errors.AsType[*stdio.ExitError](child.ExitError())
	switch {
	case !ok || exit.State == nil:
		return "the process has been ended", ""
	case exit.State.ExitCode() >= 0:
		return "the process has ended by itself, with " + exit.State.String(), ""
	}
	return "the process did not end when its stdin did: it was ended with " + exit.State.String(), "Make the server exit when its standard input ends."
}
