package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dowel-mcp/dowel/transport/stdio"
)

// findStartFailure explains why a process could not be started.
func findStartFailure(e *evidence) (finding, bool) {
	if file, ok := errors.AsType[*envFileError](e.err); ok {
		return finding{stepEnvironment, file.Error(), fmt.Sprintf("Create %s, correct its path, or make it readable.", file.file)}, true
	}
	if e.command == nil || e.exitError() != nil || !e.startedAt.IsZero() {
		return finding{}, false
	}
	if f, ok := e.findMissingFolder(); ok {
		return f, true
	}
	text := trimDialPrefix(e.err).Error()
	missing, unknown := errors.AsType[*stdio.NotFoundError](e.err)
	path := absoluteIn(e.command.Dir, e.command.Path)
	switch {
	case unknown:
		return e.explainNotFound(missing), true
	case strings.Contains(text, "is a folder, not a program"):
		return finding{stepCommand, fmt.Sprintf("%q is a folder", path), "Name the program in the folder, not the folder."}, true
	case errors.Is(e.err, syscall.ENOEXEC):
		return finding{stepStart, text, "Get the program that is built for this system, or begin the script with a #! line."}, true
	case strings.Contains(text, "interpreter in its first line"):
		return finding{stepStart, text, "Install the interpreter that the script's first line names, or correct that line."}, true
	case errors.Is(e.err, fs.ErrPermission):
		return finding{stepCommand, fmt.Sprintf("%q is not executable", path), fmt.Sprintf("Run chmod +x on %s, or give the program that runs it as the command.", path)}, true
	case errors.Is(e.err, fs.ErrNotExist):
		return e.explainMissingFile(path), true
	case strings.HasPrefix(text, "environment variable"):
		return finding{stepEnvironment, text, "Correct the name or the value of that variable."}, true
	}
	return finding{}, false
}

// trimDialPrefix unwraps err while its text begins with the prefix of a dial or a start. The
// remaining text still tells the whole error.
func trimDialPrefix(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil || !strings.HasPrefix(err.Error(), "start ") && !strings.HasPrefix(err.Error(), "dial ") {
			return err
		}
		err = next
	}
}

// findMissingFolder checks whether the working folder exists.
func (e *evidence) findMissingFolder() (finding, bool) {
	dir := e.command.Dir
	if dir == "" {
		return finding{}, false
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return finding{stepFolder, fmt.Sprintf("the working folder %q does not exist", dir), fmt.Sprintf("Create the folder %s, or correct its path.", dir)}, true
	case err != nil:
		return finding{stepFolder, fmt.Sprintf("the working folder %q cannot be used: %v", dir, withoutPath(err)), "Make the folder accessible, or name another one."}, true
	case !info.IsDir():
		return finding{stepFolder, fmt.Sprintf("the working folder %q is a file", dir), "Name a folder for the server to work in."}, true
	}
	return finding{}, false
}

// explainMissingFile explains a path that does not exist.
func (e *evidence) explainMissingFile(path string) finding {
	f := finding{stepCommand, fmt.Sprintf("%q does not exist", path), fmt.Sprintf("Correct the path %s, or build or install the program.", path)}
	near := similarPrograms(filepath.Base(path), []string{filepath.Dir(path)})
	switch {
	case strings.HasPrefix(e.command.Path, "~"):
		f.advice = "Write the path of the home folder in full: only shells understand ~."
	case strings.ContainsAny(e.command.Path, " \t"):
		f.advice = "Give the program alone as the command, and its arguments as arguments."
	case len(near) > 0:
		f.advice = fmt.Sprintf("Correct the path to %s.", filepath.Join(filepath.Dir(path), near[0]))
	}
	return f
}

// product is a product that includes a program.
type product struct{ name, url string }

var (
	nodeJS = product{"Node.js", "https://nodejs.org"}
	python = product{"Python", "https://www.python.org"}
	uv     = product{"uv", "https://docs.astral.sh/uv"}
	bun    = product{"Bun", "https://bun.sh"}
	docker = product{"Docker", "https://docs.docker.com/get-docker"}
)

var products = map[string]product{
	"node": nodeJS, "npx": nodeJS, "npm": nodeJS, "uv": uv, "uvx": uv, "python": python, "python3": python, "pip": python,
	"bun": bun, "bunx": bun, "docker": docker, "deno": {"Deno", "https://deno.com"}, "go": {"Go", "https://go.dev/dl"},
	"pnpm": {"pnpm", "https://pnpm.io"}, "yarn": {"Yarn", "https://yarnpkg.com"}, "pipx": {"pipx", "https://pipx.pypa.io"},
	"podman": {"Podman", "https://podman.io"}, "cargo": {"Rust", "https://rustup.rs"}, "java": {"a Java runtime", "https://adoptium.net"},
	"ruby": {"Ruby", "https://www.ruby-lang.org"}, "php": {"PHP", "https://www.php.net"}, "dotnet": {".NET", "https://dotnet.microsoft.com"},
}

// explainNotFound explains a program that was not found on PATH.
func (e *evidence) explainNotFound(missing *stdio.NotFoundError) finding {
	dirs := searchPath(e.command)
	f := finding{step: stepCommand, summary: fmt.Sprintf("%q was not found: neither on PATH (%s) nor in the folders of login shells and installers", missing.Name, formatCount(len(dirs), "folder"))}
	if missing.Name != e.command.Path {
		f.summary = fmt.Sprintf("%s needs %s; %s", e.command.Path, missing.Name, f.summary)
	}
	f.advice = adviseInstall(missing.Name, similarPrograms(missing.Name, dirs))
	return f
}

// adviseInstall tells how to get a program. near are installed programs with similar names.
func adviseInstall(name string, near []string) string {
	base := strings.TrimSuffix(strings.ToLower(name), ".exe")
	for _, n := range near {
		if strings.HasPrefix(base, "python") && strings.HasPrefix(n, "python") {
			return fmt.Sprintf("Write %s in place of %s, or install Python.", n, name)
		}
	}
	part, known := products[base]
	switch {
	case strings.ContainsAny(name, " \t"):
		return "Give the program alone as the command, and its arguments as arguments."
	case known && strings.EqualFold(part.name, base):
		return fmt.Sprintf("Install %s (%s), or give its full path.", part.name, part.url)
	case known:
		return fmt.Sprintf("Install %s (%s), which %s is part of, or give the full path of %s.", part.name, part.url, name, name)
	case len(near) > 0:
		return fmt.Sprintf("Correct the name (%s is there), or install %s.", strings.Join(near, " or "), name)
	}
	return fmt.Sprintf("Install %s, correct its name, or give its full path.", name)
}
