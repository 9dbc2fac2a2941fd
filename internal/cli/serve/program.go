package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
)

// programNames returns the names of the servers that are programs of their own.
func programNames() []string {
	var names []string
	for _, p := range builtin.Programs() {
		names = append(names, p.Name)
	}
	return names
}

// describePrograms returns the help text for the programs.
func describePrograms() string {
	var b strings.Builder
	b.WriteString("These are programs of their own, dowel-NAME. Releases have them beside dowel, and in a checkout dowel builds\nthem. Over HTTP dowel up serves them. dowel-NAME --help lists the options.\n")
	for _, p := range builtin.Programs() {
		fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Description)
	}
	return strings.TrimSpace(b.String())
}

// runProgram runs the program of a server with the standard streams of dowel. On Unix it replaces
// dowel, and returns an error only.
func runProgram(ctx context.Context, f *factory.Factory, name string, words []string, opts *options) error {
	if opts.Address != "" || len(opts.Hosts)+len(opts.Origins) > 0 || opts.open || opts.auth != "" {
		return exit.Usagef("%[1]s is a program of its own, without HTTP: dowel add %[1]s -- dowel serve %[1]s, then dowel up serves it over HTTP", name)
	}
	if opts.dir != "" {
		return exit.Usagef("--dir is for built-in servers: dowel-%s --help lists the options of %[1]s", name)
	}
	if opts.allow {
		words = append(slices.Clip(words), "--allow")
	}
	path, err := findProgram(ctx, f, name)
	if err != nil {
		return err
	}
	return replaceProcess(ctx, path, words)
}

// findProgram returns the path of the program of a server: beside dowel, built from the checkout
// that dowel was built from, or in PATH.
func findProgram(ctx context.Context, f *factory.Factory, name string) (string, error) {
	file := "dowel-" + name
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		self = ""
	}
	if beside := filepath.Join(filepath.Dir(self), file); self != "" && isFile(beside) {
		return beside, nil
	}
	if root := findCheckout(self); root != "" {
		return buildProgram(ctx, f, root, file)
	}
	// On Windows the command of npm ends in .cmd. An entry of PATH that is relative to the current
	// folder is an error, exec.ErrDot.
	if path, err := exec.LookPath("dowel-" + name); err == nil {
		return path, nil
	}
	return "", &missingProgramError{file, filepath.Dir(self)}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// findCheckout returns the root of the checkout that dowel was built from, or "". The compiler
// records the place of this file, unless it was called with -trimpath; then a binary in the root,
// or in its folder bin, still has its checkout around it. The current folder does not count: its
// code may come from anyone.
func findCheckout(self string) string {
	var roots []string
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		roots = append(roots, filepath.Join(filepath.Dir(file), "..", "..", ".."))
	}
	if self != "" {
		roots = append(roots, filepath.Dir(self), filepath.Dir(filepath.Dir(self)))
	}
	for _, root := range roots {
		content, err := os.ReadFile(filepath.Join(root, "servers", "go.mod"))
		if err == nil && strings.Contains(string(content), "\nmodule github.com/dowel-mcp/dowel/servers\n") {
			return root
		}
	}
	return ""
}

// buildProgram builds a program of the checkout into its folder bin, and returns its path. It takes
// a second if the program is up to date.
func buildProgram(ctx context.Context, f *factory.Factory, root, file string) (string, error) {
	path := filepath.Join(root, "bin", file)
	if !isFile(path) {
		f.Notice("Building " + path + ", the first time in a minute or two.")
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/"+strings.TrimSuffix(file, ".exe"))
	build.Dir, build.Env = filepath.Join(root, "servers"), append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	switch {
	case err == nil:
		return path, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound) && isFile(path): // it may be old, which is better than nothing
		return path, nil
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not built, and there is no Go to build it: install Go, or a release of dowel, which has %s", path, file)
	}
	return "", fmt.Errorf("go build of %s: %w\n%s", path, err, strings.TrimSpace(string(out)))
}

// missingProgramError reports that the program of a server is not installed.
type missingProgramError struct{ file, folder string }

func (e *missingProgramError) Error() string {
	return fmt.Sprintf("%s is not installed: it is neither in %s nor in PATH", e.file, e.folder)
}

// Advice says how to install the program.
func (e *missingProgramError) Advice() string {
	return "the release archives have " + e.file + " beside dowel; with npm: npm install -g @dowel-mcp/servers"
}
