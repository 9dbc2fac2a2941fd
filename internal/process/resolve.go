package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Resolve returns the absolute path of a program. Programs that a desktop application starts do
// not have the PATH of the user's terminal, where nvm, Homebrew and uv add their folders. So
// Resolve looks for a bare name in
//
//  1. PATH, without its relative entries;
//  2. the PATH of the user's login shell, $SHELL or the usual shell of the system. The shell is
//     asked at most every five minutes and has 5 s to answer. Its startup files may print other
//     text, and can test for DOWEL_RESOLVING_PATH=1. This step is skipped on Windows;
//  3. the folders of common installers, such as ~/.local/bin, /opt/homebrew/bin, ~/.nvm and
//     ~/.volta/bin.
//
// On Windows, the extensions .com, .exe, .bat and .cmd are tried: npx is npx.cmd. A name with a
// separator is a path, which is only checked. ctx limits the time for the shell. If a bare name
// is not found, the error is a [*NotFoundError].
func Resolve(ctx context.Context, name string) (string, error) {
	s := programSearch{path: os.Getenv("PATH")}
	f, err := s.locateProgram(ctx, name)
	if err != nil {
		return "", err
	}
	if !isExecutable(f.file) {
		return "", fmt.Errorf("%q is not executable: %w", f.file, fs.ErrPermission)
	}
	return f.file, nil
}

// NotFoundError is the error for a program that was not found. It wraps [exec.ErrNotFound].
type NotFoundError struct {
	Name     string
	Searched []string // descriptions of the places, in order
	Hint     string   // a sentence that tells the user how to install the program
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("program %q was not found. Searched: %s. %s", e.Name, strings.Join(e.Searched, "; "), e.Hint)
}

func (e *NotFoundError) Unwrap() error { return exec.ErrNotFound }

// programSearch holds the PATH and the folder to look for programs in.
type programSearch struct {
	path string // value of PATH
	dir  string // base of relative paths; empty means the working directory
}

// foundProgram is the file of a program, and the folders outside PATH that it was found in.
type foundProgram struct {
	file string
	dirs []string
}

// locateProgram finds the program for the Path of a Command.
func (s programSearch) locateProgram(ctx context.Context, name string) (foundProgram, error) {
	switch {
	case name == "":
		return foundProgram{}, errors.New("no program is named; give its name or path")
	case strings.ContainsRune(name, 0):
		return foundProgram{}, fmt.Errorf("program name %q contains a NUL byte", name)
	case filepath.Base(name) != name || name == "." || name == "..":
		return s.checkPath(name)
	}
	if file, ok := lookIn(filepath.SplitList(s.path), name); ok {
		return foundProgram{file: file}, nil
	}
	if interpretersFor(name) != nil {
		if f, err := s.checkPath(name); err == nil {
			return f, nil
		}
	}
	return s.findByName(ctx, name)
}

// checkPath checks a path with a separator.
func (s programSearch) checkPath(name string) (foundProgram, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return foundProgram{}, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if with, ok := withExtension(path); ok {
			return foundProgram{file: with}, nil
		}
		return foundProgram{}, fmt.Errorf("%q does not exist%s: %w", path, pathHint(name), fs.ErrNotExist)
	}
	if err != nil {
		return foundProgram{}, err
	}
	if info.IsDir() {
		return foundProgram{}, fmt.Errorf("%q is a folder, not a program; name the program in it", path)
	}
	return foundProgram{file: path}, nil
}

func pathHint(name string) string {
	switch {
	case strings.HasPrefix(name, "~"):
		return " (~ is the shell's shorthand; write the home folder out)"
	case strings.ContainsAny(name, " \t"):
		return " (if this is a command line, give the program alone, and its arguments as arguments)"
	}
	return ""
}

// findByName looks for a bare name in all places.
func (s programSearch) findByName(ctx context.Context, name string) (foundProgram, error) {
	dirs := filepath.SplitList(s.path)
	if file, ok := lookIn(dirs, name); ok {
		return foundProgram{file: file}, nil
	}
	missing := &NotFoundError{Name: name, Hint: installHint(name)}
	missing.addSearched("PATH", dirs)

	if runtime.GOOS != "windows" {
		shell, login, err := loginPath(ctx)
		login = removeKnown(login, dirs)
		if file, ok := lookIn(login, name); ok {
			return foundProgram{file: file, dirs: login}, nil
		}
		if err != nil {
			missing.Searched = append(missing.Searched, fmt.Sprintf("not the PATH of the login shell %s: %v", shell, err))
		} else {
			missing.addSearched("further folders on the PATH of the login shell "+shell, login)
		}
		dirs = append(dirs, login...)
	}

	usual := removeKnown(commonInstallDirs(), dirs)
	if file, ok := lookIn(usual, name); ok {
		return foundProgram{file: file, dirs: []string{filepath.Dir(file)}}, nil
	}
	missing.addSearched("the usual folders of installers", usual)
	return foundProgram{}, missing
}

func (e *NotFoundError) addSearched(place string, dirs []string) {
	list := "none"
	if len(dirs) > 0 {
		list = strings.Join(dirs, ", ")
	}
	e.Searched = append(e.Searched, place+" ("+list+")")
}

func removeKnown(dirs, known []string) []string {
	var rest []string
	for _, dir := range dirs {
		if dir != "" && !slices.Contains(known, dir) && !slices.Contains(rest, dir) {
			rest = append(rest, dir)
		}
	}
	return rest
}

// lookIn returns the file called name in the first folder that has one. It skips relative
// folders, because the result must not depend on the working directory of this process.
func lookIn(dirs []string, name string) (string, bool) {
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		if isExecutable(file) {
			return file, true
		}
		if file, ok := withExtension(file); ok {
			return file, true
		}
	}
	return "", false
}

// windowsExtensions lists the extensions that can be started. PATHEXT also lists extensions that
// only a desktop can open, such as .js.
var windowsExtensions = []string{".com", ".exe", ".bat", ".cmd"}

func withExtension(file string) (string, bool) {
	if runtime.GOOS != "windows" {
		return "", false
	}
	for _, ext := range windowsExtensions {
		if isExecutable(file + ext) {
			return file + ext, true
		}
	}
	return "", false
}

// isExecutable reports whether the system can start a file. On Windows the extension decides,
// which excludes the shell script without extension beside npx.cmd.
func isExecutable(file string) bool {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if runtime.GOOS == "windows" {
		return slices.Contains(windowsExtensions, strings.ToLower(filepath.Ext(file)))
	}
	return info.Mode()&0o111 != 0
}

// commonInstallDirs returns the existing folders of step 3 of Resolve.
func commonInstallDirs() []string {
	home, _ := os.UserHomeDir()
	if home == "" {
		home = string(filepath.Separator)
	}
	patterns := usualUnix
	if runtime.GOOS == "windows" {
		patterns = usualWindows
	}
	var dirs []string
	for _, pattern := range patterns {
		if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
			pattern = filepath.Join(home, rest)
		}
		pattern = os.Expand(pattern, func(key string) string {
			if value := os.Getenv(key); value != "" {
				return value
			}
			return "\x00" // a pattern that matches nothing
		})
		matches, _ := filepath.Glob(filepath.FromSlash(pattern))
		slices.SortStableFunc(matches, func(a, b string) int { return compareVersions(b, a) }) // newest first
		dirs = append(dirs, matches...)
	}
	return dirs
}

var usualUnix = []string{
	"~/.local/bin", "~/bin", "/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/opt/local/bin", "/snap/bin",
	"~/.volta/bin", "~/.local/share/fnm/aliases/default/bin", "~/Library/Application Support/fnm/aliases/default/bin",
	"~/.nvm/versions/node/*/bin", "~/.asdf/shims", "~/.local/share/mise/shims", "~/.bun/bin", "~/.deno/bin",
	"~/.local/share/pnpm", "~/Library/pnpm", "~/.npm-global/bin", "~/.pyenv/shims", "~/.cargo/bin", "~/go/bin",
	"/usr/local/go/bin", "~/.dotnet/tools", "~/.rbenv/shims", "~/.sdkman/candidates/java/current/bin", "~/.nix-profile/bin",
	"/nix/var/nix/profiles/default/bin", "/run/current-system/sw/bin", "~/.docker/bin",
	"/Applications/Docker.app/Contents/Resources/bin", "~/.rd/bin", "/usr/bin", "/bin",
}

var usualWindows = []string{
	"${NVM_SYMLINK}", "${APPDATA}/npm", "${ProgramFiles}/nodejs", "${LOCALAPPDATA}/Programs/nodejs", "${ProgramFiles}/Volta",
	"${LOCALAPPDATA}/Volta/bin", "~/.local/bin", "~/.cargo/bin", "~/.bun/bin", "~/.deno/bin", "${LOCALAPPDATA}/pnpm",
	"${LOCALAPPDATA}/Programs/Python/Python3*", "${LOCALAPPDATA}/Programs/Python/Python3*/Scripts", "~/.pyenv/pyenv-win/shims",
	"${LOCALAPPDATA}/Microsoft/WindowsApps", "${LOCALAPPDATA}/Microsoft/WinGet/Links", "~/scoop/shims",
	"${ProgramData}/chocolatey/bin", "${ProgramFiles}/Docker/Docker/resources/bin", "${ProgramFiles}/Go/bin", "~/go/bin", "~/.dotnet/tools",
}

// compareVersions orders names by the numbers in them: v9 precedes v22.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		na, ra := leadingNumber(a)
		nb, rb := leadingNumber(b)
		if na != "" && nb != "" {
			if d := len(na) - len(nb); d != 0 {
				return d
			}
			if d := strings.Compare(na, nb); d != 0 {
				return d
			}
			a, b = ra, rb
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func leadingNumber(s string) (digits, rest string) {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// installHint returns a sentence on how to install a missing program.
func installHint(name string) string {
	if strings.ContainsAny(name, " \t") {
		return "The name contains a space: give the program alone, and its arguments as arguments."
	}
	known := map[string][2]string{
		"node": {"Node.js", "https://nodejs.org"}, "npx": {"Node.js", "https://nodejs.org"}, "npm": {"Node.js", "https://nodejs.org"},
		"uv": {"uv", "https://docs.astral.sh/uv"}, "uvx": {"uv", "https://docs.astral.sh/uv"},
		"python": {"Python", "https://www.python.org"}, "python3": {"Python", "https://www.python.org"}, "pip": {"Python", "https://www.python.org"},
		"pipx": {"pipx", "https://pipx.pypa.io"}, "bun": {"Bun", "https://bun.sh"}, "bunx": {"Bun", "https://bun.sh"},
		"deno": {"Deno", "https://deno.com"}, "pnpm": {"pnpm", "https://pnpm.io"}, "yarn": {"Yarn", "https://yarnpkg.com"},
		"docker": {"Docker", "https://docs.docker.com/get-docker"}, "podman": {"Podman", "https://podman.io"},
		"go": {"Go", "https://go.dev/dl"}, "cargo": {"Rust", "https://rustup.rs"}, "java": {"a Java runtime", "https://adoptium.net"},
		"ruby": {"Ruby", "https://www.ruby-lang.org"}, "php": {"PHP", "https://www.php.net"}, "dotnet": {".NET", "https://dotnet.microsoft.com"},
	}
	if k, ok := known[strings.TrimSuffix(strings.ToLower(name), ".exe")]; ok {
		return fmt.Sprintf("Install %s (%s), or give the program's full path.", k[0], k[1])
	}
	return "Install it, correct the name, or give the program's full path."
}
