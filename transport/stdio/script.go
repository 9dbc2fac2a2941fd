package stdio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// runnable is a program that the operating system can start.
type runnable struct {
	file   string
	before []string // arguments ahead of the command's own
	dirs   []string // folders that the child's PATH needs
}

// interpreters says what runs a file that cannot run by itself, by its extension.
var interpreters = map[string][]string{
	".js": {"node"}, ".mjs": {"node"}, ".cjs": {"node"},
	".ts": {"node"}, ".mts": {"node"}, ".cts": {"node"},
	".py": {"python3"}, ".rb": {"ruby"}, ".php": {"php"}, ".sh": {"sh"},
	".jar": {"java", "-jar"},
}

func interpreter(file string) []string {
	ext := strings.ToLower(filepath.Ext(file))
	if ext == ".py" && runtime.GOOS == "windows" {
		return []string{"python"}
	}
	return interpreters[ext]
}

// runnable puts the interpreter before a script, and makes sure of the one that its first line asks env for: without
// that, the only sign of a missing node would be a line of env's on stderr.
func (s search) runnable(ctx context.Context, f found) (runnable, error) {
	line := shebang(f.file)
	jar := strings.EqualFold(filepath.Ext(f.file), ".jar")
	if with := interpreter(f.file); with != nil && (jar || line == "" || !executable(f.file)) {
		prog, err := s.find(ctx, with[0])
		if err != nil {
			return runnable{}, fmt.Errorf("it is run by %s, and %w", with[0], err)
		}
		before := append(append([]string{}, with[1:]...), f.file)
		return runnable{file: prog.file, before: before, dirs: append(f.dirs, prog.dirs...)}, nil
	}
	if !executable(f.file) {
		return runnable{}, fmt.Errorf("%q is not executable; run chmod +x on it, or give the program that runs it as the command: %w", f.file, os.ErrPermission)
	}
	run := runnable{file: f.file, dirs: f.dirs}
	if name := envProgram(line); name != "" {
		// A sibling counts as found: a version manager keeps npx and node in one folder.
		around := search{path: strings.Join(append([]string{s.path}, f.dirs...), string(filepath.ListSeparator)), dir: s.dir}
		prog, err := around.find(ctx, name)
		if err != nil {
			return runnable{}, fmt.Errorf("its first line asks for %s, and %w", name, err)
		}
		run.dirs = append(run.dirs, prog.dirs...)
	}
	return run, nil
}

// shebang is the first line of a script without "#!", or "". Windows knows no such thing.
func shebang(file string) string {
	if runtime.GOOS == "windows" {
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	rest, ok := strings.CutPrefix(string(line), "#!")
	if !ok {
		return ""
	}
	return strings.TrimSpace(rest)
}

// envProgram is the program that a first line such as "/usr/bin/env node" looks for on PATH.
func envProgram(line string) string {
	words := strings.Fields(line)
	if len(words) < 2 || filepath.Base(words[0]) != "env" {
		return ""
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") && !strings.Contains(w, "/") {
			return w
		}
	}
	return ""
}

// errBatch is what cmd.exe has no way to carry.
var errBatch = errors.New("cmd.exe, which runs .cmd and .bat files, cannot carry a line break or NUL byte in an argument; start the program behind the batch file instead")

// batchLine is the command line with which cmd.exe runs a batch file. os/exec quotes for programs that split their
// line as C programs do; cmd.exe does not, and would take & | < > ^ % and quotes in an argument as its own. So:
// every word stands in quotes, a quote in it is doubled (which keeps cmd.exe inside the quotes and is one quote to the
// program behind), backslashes before a quote are doubled, and each % is followed by the empty expansion of %cd:~,%,
// which breaks up a variable's name. /d ignores AutoRun, /v:OFF turns off "!", /s makes the outer quotes unambiguous.
func batchLine(cmd string, argv []string) (string, error) {
	var b strings.Builder
	b.WriteString(`"` + cmd + `" /e:ON /v:OFF /d /s /c "`)
	for i, arg := range argv {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", fmt.Errorf("argument %d: %w", i, errBatch)
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		batchWord(&b, arg)
	}
	b.WriteByte('"')
	return b.String(), nil
}

func batchWord(b *strings.Builder, arg string) {
	b.WriteByte('"')
	slashes := 0
	for i := range len(arg) {
		switch arg[i] {
		case '\\':
			slashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, slashes) + `"`)
			slashes = 0
		case '%':
			b.WriteString("%%cd:~,")
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteByte(arg[i])
	}
	b.WriteString(strings.Repeat(`\`, slashes) + `"`)
}
