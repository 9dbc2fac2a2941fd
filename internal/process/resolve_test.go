//go:build unix

package process

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// machine is a fake one: a home, a PATH and a login shell of the test's own.
type machine struct {
	home, onPath, onLogin, usual string
	askedLog                     string // one line for each time that the login shell was asked
}

// newMachine's login shell runs startup (a script) before what it was asked to run.
func newMachine(t *testing.T, startup string) machine {
	t.Helper()
	root := t.TempDir()
	m := machine{
		home: root, onPath: filepath.Join(root, "path"), onLogin: filepath.Join(root, "login"),
		usual: filepath.Join(root, ".local/bin"), askedLog: filepath.Join(root, "asked"),
	}
	for _, dir := range []string{m.onPath, m.onLogin, m.usual} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	shell := filepath.Join(root, "fakesh")
	writeScript(t, shell, `echo "$@" >>"$HOME/asked"
PATH="$PATH:$HOME/login"; export PATH
[ "$1 $2" = "-i -c" ] || exit 1
`+startup+`
eval "$3"`)
	t.Setenv("HOME", root)
	t.Setenv("SHELL", shell)
	t.Setenv("PATH", m.onPath)
	old := loginPaths
	loginPaths = newShellPathCache(time.Minute)
	t.Cleanup(func() { loginPaths = old })
	return m
}

func (m machine) asked() int {
	b, _ := os.ReadFile(m.askedLog)
	return strings.Count(string(b), "\n")
}

func TestResolveOrder(t *testing.T) {
	polltest.NoLeaks(t)
	m := newMachine(t, "")
	places := []string{m.usual, m.onLogin, m.onPath} // from the last to the first
	for i, dir := range places {
		want := filepath.Join(dir, "tool-of-mine")
		writeScript(t, want, "")
		if got, err := Resolve(t.Context(), "tool-of-mine"); got != want || err != nil {
			t.Errorf("with %v: %q, %v, want %q", places[:i+1], got, err, want)
		}
	}
	if m.asked() != 1 {
		t.Errorf("the login shell was asked %d times", m.asked())
	}
}

func TestResolveAsksNobodyForWhatIsOnPath(t *testing.T) {
	m := newMachine(t, "")
	writeScript(t, filepath.Join(m.onPath, "tool"), "")
	if _, err := Resolve(t.Context(), "tool"); err != nil || m.asked() != 0 {
		t.Errorf("asked the login shell %d times, %v", m.asked(), err)
	}
}

func TestResolvePassesOver(t *testing.T) {
	m := newMachine(t, "")
	os.WriteFile(filepath.Join(m.onPath, "tool"), []byte("not executable"), 0o644)
	os.Mkdir(filepath.Join(m.onLogin, "tool"), 0o755)
	want := filepath.Join(m.usual, "tool")
	writeScript(t, want, "")
	t.Chdir(m.onLogin)
	writeScript(t, "tool2", "")
	t.Setenv("PATH", m.onPath+"::.")
	if got, err := Resolve(t.Context(), "tool"); got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	os.Remove(filepath.Join(m.onLogin, "tool2"))
	writeScript(t, filepath.Join(m.home, "here", "tool2"), "")
	t.Chdir(filepath.Join(m.home, "here"))
	if got, err := Resolve(t.Context(), "tool2"); err == nil {
		t.Errorf("a program of the working directory was found by its bare name: %q", got)
	}
}

func TestResolveNewestNode(t *testing.T) {
	m := newMachine(t, "")
	for _, v := range []string{"v9.11.2", "v22.3.0", "v22.14.0"} {
		writeScript(t, filepath.Join(m.home, ".nvm/versions/node", v, "bin/npx-of-nvm"), "")
	}
	got, err := Resolve(t.Context(), "npx-of-nvm")
	if err != nil || !strings.Contains(got, "v22.14.0") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLoginShells(t *testing.T) {
	for _, tt := range []struct {
		name, startup string
		want          string        // "": found, else part of the error
		timeout       time.Duration // for the shell, longer if it did not start within it; an hour if it answers
	}{
		{"noisy", `echo "Welcome! PATH is $PATH"; echo noise >&2; printf 'no newline'`, "", time.Hour},
		{"loud", `i=0; while [ $i -lt 3000 ]; do echo "0123456789012345678901234567890123456789"; i=$((i+1)); done`, "", time.Hour},
		{"reads its stdin", `read -r answer; cat >/dev/null`, "", time.Hour},
		{"leaves a background job", `sleep 1000 & echo $! >"$HOME/job"`, "", time.Hour},
		{"prints and hangs afterwards", `trap 'sleep 1000' EXIT`, "", time.Hour},
		{"hangs", `sleep 1000`, "did not answer within TIMEOUT", 500 * time.Millisecond},
		{"hangs and ignores signals", `trap '' TERM HUP; while :; do sleep 1000; done`, "did not answer within TIMEOUT", 500 * time.Millisecond},
		{"fails", `exit 1`, "ended without an answer", time.Hour},
		{"never stops talking", `exec yes`, "without an answer", time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			polltest.NoLeaks(t)
			path := os.Getenv("PATH")
			polltest.UntilLongEnough(t, tt.timeout, func(timeout time.Duration) error {
				m := newMachine(t, tt.startup)
				t.Setenv("PATH", m.onPath+":"+path) // the scripts use sleep and cat
				loginPaths.timeout = timeout
				return resolveByShell(t, m, strings.Replace(tt.want, "TIMEOUT", timeout.String(), 1))
			})
		})
	}
}

// resolveByShell resolves a program that only the login shell knows. It returns an error if the
// shell did not start within its time limit.
func resolveByShell(t *testing.T, m machine, want string) error {
	writeScript(t, filepath.Join(m.onLogin, "tool-of-mine"), "")
	var err error
	polltest.Within(t, func() { _, err = Resolve(t.Context(), "tool-of-mine") })
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want %q", err, want)
	}
	if b, err := os.ReadFile(filepath.Join(m.home, "job")); err == nil {
		var pid int
		for _, c := range strings.TrimSpace(string(b)) {
			pid = 10*pid + int(c-'0')
		}
		noneRuns(t, []int{pid})
	}
	Resolve(t.Context(), "tool-of-mine")
	switch n := m.asked(); n {
	case 0:
		return errors.New("the login shell did not start")
	case 1:
	default:
		t.Errorf("asked %d times", n)
	}
	return nil
}

func TestResolveIsBoundByItsContext(t *testing.T) {
	m := newMachine(t, `PATH=/usr/bin:/bin sleep 1000`)
	loginPaths.timeout = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var both sync.WaitGroup
	for range 2 { // one runs the shell, one waits for its turn
		both.Go(func() {
			if _, err := Resolve(ctx, "tool-of-mine"); err == nil {
				t.Error("found")
			}
		})
	}
	polltest.Within(t, both.Wait)
	writeScript(t, os.Getenv("SHELL"), `PATH="$PATH:$HOME/login"; export PATH; eval "$3"`)
	writeScript(t, filepath.Join(m.onLogin, "tool-of-mine"), "")
	if _, err := Resolve(t.Context(), "tool-of-mine"); err != nil {
		t.Errorf("the cancelled question was remembered as an answer: %v", err)
	}
}

// Real shells understand how they are asked, and read their startup files.
func TestRealLoginShells(t *testing.T) {
	for name, rc := range map[string]string{"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish", "sh": ".profile"} {
		t.Run(name, func(t *testing.T) {
			shell := installed(t, name)
			path := os.Getenv("PATH")
			m := newMachine(t, "")
			t.Setenv("SHELL", shell)
			t.Setenv("PATH", path)
			file := filepath.Join(m.home, rc)
			os.MkdirAll(filepath.Dir(file), 0o755)
			line := `export PATH="$PATH:$HOME/login"; echo noise` + "\n"
			if err := os.WriteFile(file, []byte(line), 0o644); err != nil {
				t.Fatal(err)
			}
			if name == "bash" { // a login bash reads .bashrc only where its profile says so, as every distribution's does
				os.WriteFile(filepath.Join(m.home, ".bash_profile"), []byte(". ~/.bashrc\n"), 0o644)
			}
			_, dirs, err := loginPath(t.Context())
			if err != nil || !slices.Contains(dirs, m.onLogin) {
				t.Errorf("%v, %v", dirs, err)
			}
		})
	}
}

func TestNotFound(t *testing.T) {
	m := newMachine(t, "")
	t.Setenv("PATH", m.onPath+":/nonexistent-on-path")
	for name, wantHint := range map[string]string{
		"npx-of-nobody":           "Install it, correct the name, or give the program's full path.",
		"server --stdio":          "The name contains a space: give the program alone, and its arguments as arguments.",
		"uvx":                     "Install uv (https://docs.astral.sh/uv), or give the program's full path.",
		"program-that-none-has-x": "Install it, correct the name, or give the program's full path.",
	} {
		_, err := Command{Path: name}.Start(t.Context())
		var missing *NotFoundError
		if !errors.As(err, &missing) || !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range []string{
			`start "` + name + `": program "` + name + `" was not found. Searched: PATH (` + m.onPath + ", /nonexistent-on-path); ",
			"login shell " + m.home + "/fakesh (" + m.onLogin + "); ",
			"the usual folders of installers (" + m.usual + ", ",
			"). " + wantHint,
		} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q\nlacks %q", err, part)
			}
		}
	}
}

func TestStartErrors(t *testing.T) {
	m := newMachine(t, "")
	dir := m.home
	write := func(name, content string, mode fs.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	plain := write("plain", "x", 0o644)
	garbage := write("garbage", "\x01\x02", 0o755)
	badShebang := write("bad", "#!/nonexistent/interp\n", 0o755)
	needsNode := write("tool", "#!/usr/bin/env -S interp-of-nobody --flag\n", 0o755)
	for _, tt := range []struct {
		c    Command
		want string
		is   error
	}{
		{Command{}, `start "": no program is named; give its name or path`, nil},
		{Command{Path: "/bin/sh", Dir: dir + "/none"}, `working directory "` + dir + `/none" does not exist; create it`, fs.ErrNotExist},
		{Command{Path: "/bin/sh", Dir: plain}, `working directory "` + plain + `" is a file, not a folder`, nil},
		{Command{Path: dir}, `"` + dir + `" is a folder, not a program`, nil},
		{Command{Path: dir + "/none"}, `"` + dir + `/none" does not exist`, fs.ErrNotExist},
		{Command{Path: "npx -y @scope/server"}, `if this is a command line, give the program alone`, fs.ErrNotExist},
		{Command{Path: "~/server"}, `write the home folder out`, fs.ErrNotExist},
		{Command{Path: plain}, `"` + plain + `" is not executable; run chmod +x`, fs.ErrPermission},
		{Command{Path: garbage}, `"` + garbage + `" is neither a program for this system nor a script`, nil},
		{Command{Path: badShebang}, `"` + badShebang + `" exists, but the interpreter in its first line (#!/nonexistent/interp) does not`, nil},
		{Command{Path: needsNode}, `its first line asks for interp-of-nobody, and program "interp-of-nobody" was not found`, exec.ErrNotFound},
		{Command{Path: "/bin/sh", Args: []string{"a\x00b"}}, `argument 1 contains a NUL byte`, nil},
		{Command{Path: "sh\x00"}, `contains a NUL byte`, nil},
	} {
		polltest.NoLeaks(t)
		_, err := tt.c.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%+v: %v\nwant %q, %v", tt.c, err, tt.want, tt.is)
		}
	}
}

// What is found outside of PATH finds its own kin: npx of nvm begins with "#!/usr/bin/env node".
func TestChildFindsTheSiblingsOfItsProgram(t *testing.T) {
	for _, place := range []string{"login", ".local/bin"} {
		t.Run(place, func(t *testing.T) {
			path := os.Getenv("PATH")
			m := newMachine(t, "")
			t.Setenv("PATH", m.onPath+":"+path)
			writeScript(t, filepath.Join(m.home, place, "node-of-mine"), `[ "$1" ] && echo "node runs $(basename $1)"`)
			npx := filepath.Join(m.home, place, "npx-of-mine")
			if err := os.WriteFile(npx, []byte("#!/usr/bin/env node-of-mine\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			out, err := io.ReadAll(start(t, Command{Path: "npx-of-mine"}))
			if string(out) != "node runs npx-of-mine\n" || err != nil {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

// A program on PATH can need one that is not: its interpreter is looked for everywhere too, and the
// child finds it.
func TestChildFindsItsInterpreter(t *testing.T) {
	path := os.Getenv("PATH")
	m := newMachine(t, "")
	t.Setenv("PATH", m.onPath+":"+path)
	writeScript(t, filepath.Join(m.usual, "node-of-mine"), `echo "node runs $(basename $1)"`)
	if err := os.WriteFile(filepath.Join(m.onPath, "tool"), []byte("#!/usr/bin/env node-of-mine\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(start(t, Command{Path: "tool"}))
	if string(out) != "node runs tool\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

func TestScripts(t *testing.T) {
	path := os.Getenv("PATH")
	m := newMachine(t, "")
	t.Setenv("PATH", m.onPath+":"+path)
	for _, name := range []string{"node", "python3", "ruby", "php", "java"} {
		writeScript(t, filepath.Join(m.onPath, name), `echo "`+name+` $@"`)
	}
	dir := filepath.Join(m.home, "work")
	os.Mkdir(dir, 0o755)
	for _, tt := range []struct {
		file, content string
		mode          fs.FileMode
		want          string
	}{
		{"a.js", "1", 0o644, "node DIR/a.js x"},
		{"b.mjs", "1", 0o755, "node DIR/b.mjs x"}, // executable, but not by itself
		{"c.TS", "1", 0o644, "node DIR/c.TS x"},
		{"d.py", "1", 0o644, "python3 DIR/d.py x"},
		{"e.py", "#!/bin/sh\necho itself $1", 0o755, "itself x"}, // a virtual environment's python, say
		{"f.py", "#!/bin/sh\necho itself $1", 0o644, "python3 DIR/f.py x"},
		{"g.jar", "1", 0o755, "java -jar DIR/g.jar x"},
		{"h.rb", "1", 0o644, "ruby DIR/h.rb x"},
		{"i.php", "1", 0o644, "php DIR/i.php x"},
		{"j.sh", "echo shell $0 $1", 0o644, "shell DIR/j.sh x"},
	} {
		if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.content), tt.mode); err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(tt.want, "DIR", dir) + "\n"
		for _, name := range []string{tt.file, "./" + tt.file, filepath.Join(dir, tt.file)} {
			child := start(t, Command{Path: name, Args: []string{"x"}, Dir: dir})
			if out, err := io.ReadAll(child); string(out) != want || err != nil {
				t.Errorf("%s: %q, %v, want %q; stderr %q", name, out, err, want, child.stderr.snapshot())
			}
		}
	}
}

func TestEnvProgram(t *testing.T) {
	for line, want := range map[string]string{
		"":                                     "",
		"/bin/sh":                              "",
		"/bin/sh -e":                           "",
		"/usr/bin/env node":                    "node",
		"/usr/bin/env  -S node --experimental": "node",
		"/usr/bin/env -S A=b deno run":         "deno",
		"/usr/bin/env /opt/x/node":             "",
		"/usr/bin/env":                         "",
	} {
		if got := envTarget(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestCompareVersions(t *testing.T) {
	names := []string{"v22.14.0", "v9.11.2", "v22.3.0", "v22.14.0-rc", "v22", "w1"}
	slices.SortFunc(names, compareVersions)
	if want := []string{"v9.11.2", "v22", "v22.3.0", "v22.14.0", "v22.14.0-rc", "w1"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}

func TestBatchLine(t *testing.T) {
	const head = `"C:\W\cmd.exe" /e:ON /v:OFF /d /s /c "`
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{`C:\Program Files\nodejs\npx.cmd`, "-y", "pkg"}, `"C:\Program Files\nodejs\npx.cmd" "-y" "pkg"`},
		{[]string{"a.bat", ""}, `"a.bat" ""`},
		{[]string{"a.bat", `{"k":"v & calc"}`}, `"a.bat" "{""k"":""v & calc""}"`},
		{[]string{"a.bat", `" & calc & "`}, `"a.bat" """ & calc & """`},
		{[]string{"a.bat", `%PATH%`}, `"a.bat" "%%cd:~,%PATH%%cd:~,%"`},
		{[]string{"a.bat", `c:\dir\`}, `"a.bat" "c:\dir\\"`},
		{[]string{"a.bat", `\"`}, `"a.bat" "\\"""`},
		{[]string{"a.bat", `a^b|c>d!e!`}, `"a.bat" "a^b|c>d!e!"`},
	} {
		if got, err := batchLine(`C:\W\cmd.exe`, tt.argv); got != head+tt.want+`"` || err != nil {
			t.Errorf("%q:\n got %s\nwant %s", tt.argv, got, head+tt.want+`"`)
		}
	}
	for _, bad := range []string{"a\nb", "a\rb", "a\x00b"} {
		if line, err := batchLine("cmd.exe", []string{"a.bat", bad}); !errors.Is(err, errBatch) {
			t.Errorf("%q: %s, %v", bad, line, err)
		}
	}
}
