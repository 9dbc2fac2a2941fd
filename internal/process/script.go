package process

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

// runnableProgram is a program that the operating system can start.
type runnableProgram struct {
	file   string
	before []string // arguments before the arguments of the command
	dirs   []string // folders to add to the child's PATH
}

// interpreters maps file extensions to the command line that runs such a file.
var interpreters = map[string][]string{
	".js": {"node"}, ".mjs": {"node"}, ".cjs": {"node"},
	".ts": {"node"}, ".mts": {"node"}, ".cts": {"node"},
	".py": {"python3"}, ".rb": {"ruby"}, ".php": {"php"}, ".sh": {"sh"},
	".jar": {"java", "-jar"},
}

func interpretersFor(file string) []string {
	ext := strings.ToLower(filepath.Ext(file))
	if ext == ".py" && runtime.GOOS == "windows" {
		return []string{"python"}
	}
	return interpreters[ext]
}

// makeRunnable puts the interpreter before a script. It also checks the interpreter that a first
// line with env names: otherwise a missing node would show only as a line of env on stderr.
func (s programSearch) makeRunnable(ctx context.Context, f foundProgram) (runnableProgram, error) {
	line := readShebang(f.file)
	jar := strings.EqualFold(filepath.Ext(f.file), ".jar")
	if with := interpretersFor(f.file); with != nil && (jar || line == "" || !isExecutable(f.file)) {
		prog, err := s.findByName(ctx, with[0])
		if err != nil {
			return runnableProgram{}, fmt.Errorf("it is run by %s, and %w", with[0], err)
		}
		before := append(append([]string{}, with[1:]...), f.file)
		return runnableProgram{file: prog.file, before: before, dirs: append(f.dirs, prog.dirs...)}, nil
	}
	if !isExecutable(f.file) {
		return runnableProgram{}, fmt.Errorf("%q is not executable; run chmod +x on it, or give the program that runs it as the command: %w", f.file, os.ErrPermission)
	}
	run := runnableProgram{file: f.file, dirs: f.dirs}
	if name := envTarget(line); name != "" {
		// Search the folder of the script too: a version manager keeps npx and node together.
		around := programSearch{path: strings.Join(append([]string{s.path}, f.dirs...), string(filepath.ListSeparator)), dir: s.dir}
		prog, err := around.findByName(ctx, name)
		if err != nil {
			return runnableProgram{}, fmt.Errorf("its first line asks for %s, and %w", name, err)
		}
		run.dirs = append(run.dirs, prog.dirs...)
	}
	return run, nil
}

// readShebang returns the first line of a script without "#!", or "". It always returns "" on
// Windows.
func readShebang(file string) string {
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

// envTarget returns the program that env looks for in a first line such as "/usr/bin/env node".
func envTarget(line string) string {
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

// errBatch is the error for arguments that cmd.exe cannot carry.
var errBatch = errors.New("cmd.exe, which runs .cmd and .bat files, cannot carry a line break or NUL byte in an argument; start the program behind the batch file instead")

// batchLine returns the command line that makes cmd.exe run a batch file. os/exec quotes for
// programs that split their line as C programs do. cmd.exe does not: it would interpret & | < > ^
// % and quotes in an argument. So every word is quoted, a quote in it is doubled (cmd.exe stays
// inside the quotes, and the program sees one quote), backslashes before a quote are doubled, and
// each % is followed by %cd:~,%, which expands to nothing and breaks up the names of variables.
// /d ignores AutoRun, /v:OFF disables "!", and /s makes the outer quotes unambiguous.
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
