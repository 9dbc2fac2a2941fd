package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

func TestCommandThatWorks(t *testing.T) {
	c := roleCommand(t, "server", "SOME_API_KEY=hush-hush-hush")
	c.Dir = t.TempDir()
	all := examineAll(t, Server{Name: "example", Target: c})
	want := "definition > folder > environment > command > start > first second > handshake > stdout > server > lists > end"
	if got := joinNames(all); got != want {
		t.Errorf("the steps are\n%s, want\n%s", got, want)
	}
	checkContains(t, stepNamed(t, all, "environment").Detail, "SOME_API_KEY", roleKey)
	checkContains(t, stepNamed(t, all, "command").Detail, c.Path)
	checkContains(t, stepNamed(t, all, "handshake").Detail, "2026-07-28", "modern")
	checkContains(t, stepNamed(t, all, "server").Detail, "example 1.2.3")
	checkContains(t, stepNamed(t, all, "lists").Detail, "2 tools, 1 resource, 1 prompt")
	checkContains(t, stepNamed(t, all, "end").Detail, "exit status 0")
}

func TestWordsAsCommand(t *testing.T) {
	t.Setenv(roleKey, "server")
	exe, _ := os.Executable()
	if got := joinNames(examineAll(t, Server{Target: []string{exe, "-test.run=^$"}})); !strings.HasSuffix(got, "lists > end") {
		t.Error(got)
	}
}

func TestSlowServer(t *testing.T) {
	address, open := newGate(t)
	all := collectSteps(t, Examine(testContext(t), Server{Target: roleCommand(t, "slow", gateKey+"="+address)}), func(s Step) {
		if s.Name == "first second" {
			open()
		}
	})
	checkContains(t, stepNamed(t, all, "first second").Detail, "lives")
	if took := stepNamed(t, all, "handshake").Took; took < time.Second {
		t.Errorf("the handshake took %v", took)
	}
}

func TestNoisyServer(t *testing.T) {
	s := stepNamed(t, examineAll(t, Server{Target: roleCommand(t, "noisy")}), "stdout")
	if s.Status != Warning {
		t.Errorf("the status is %s", s.Status)
	}
	checkContains(t, s.Detail, "Welcome to the server")
	checkContains(t, s.Advice, "stderr")
}

func TestServerThatEndsAtProbe(t *testing.T) {
	all := examineAll(t, Server{Target: roleCommand(t, "old")})
	checkContains(t, stepNamed(t, all, "handshake").Detail, "2024-11-05, legacy", "was started again")
	checkContains(t, stepNamed(t, all, "stdout").Detail, "nothing but messages")
	for _, name := range []string{"server", "lists"} { // it has neither a name nor anything to offer
		if s := stepNamed(t, all, name); s.Status != Warning || s.Advice == "" {
			t.Errorf("%+v", s)
		}
	}
}

func TestServerThatIgnoresEOF(t *testing.T) {
	for _, role := range []string{"deaf", "stubborn"} {
		t.Run(role, func(t *testing.T) {
			s := stepNamed(t, examineAll(t, Server{Target: roleCommand(t, role)}), "end")
			if s.Status != Warning {
				t.Errorf("the status is %s", s.Status)
			}
			checkContains(t, s.Advice, "standard input ends")
		})
	}
}

func TestServerThatDies(t *testing.T) {
	for _, test := range []struct {
		name, role, env string
		step            string
		summary, advice string
		exit            string
	}{
		{"with words", "dies", "SAYS=Error: Cannot find module 'left-pad'", "first second", "left-pad is missing", "npm install", "exit status 3"},
		{"of rubbish", "dies", "PRINTS=hello\n", "first second", "hello", "stderr", "exit status 3"},
		{"without a word", "leaves", "A=b", "first second", "said nothing", "stdio mode", "exit status 0"},
		{"of a signal", "killed", "A=b", "first second", "killed", "memory", "signal: killed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := failedStep(t, Server{Target: roleCommand(t, test.role, test.env)})
			if s.Name != test.step || s.Diagnosis.Exit != test.exit {
				t.Errorf("the step is %q, the exit %q", s.Name, s.Diagnosis.Exit)
			}
			checkContains(t, s.Detail, test.summary)
			checkContains(t, s.Advice, test.advice)
		})
	}
}

// A process that ends before the first frame is sent has ended within its first second.
func TestServerThatDiesBeforeFirstFrame(t *testing.T) {
	var all []Step
	w := newExamination(t.Context(), Server{Target: stdio.Command{Path: "server"}}, func(s Step) bool {
		all = append(all, s)
		return true
	})
	w.startWatch = time.Minute
	d := &pendingDial{done: make(chan struct{}), err: fmt.Errorf("dial server: %w", &stdio.ExitError{Command: "server"})}
	close(d.done)
	if !w.watchStart(d) {
		t.Fatal("the examination stops before it reports the failure")
	}
	w.reportFailure(d.err)
	if got, want := joinNames(all), "start > first second(failed)"; got != want {
		t.Errorf("the steps are %s, want %s", got, want)
	}
}

func TestServerThatDiesLater(t *testing.T) {
	address, open := newGate(t)
	all := collectSteps(t, Examine(testContext(t), Server{Target: roleCommand(t, "late", gateKey+"="+address)}), func(s Step) {
		if s.Name == "first second" {
			open()
		}
	})
	s := all[len(all)-1]
	if s.Name != "handshake" || s.Diagnosis == nil || s.Diagnosis.Exit != "exit status 4" {
		t.Fatalf("the last step is %+v", s)
	}
	checkContains(t, s.Detail, "exit status 4")
	checkContains(t, s.Advice, "terminal")
}

func TestDiagnosisContent(t *testing.T) {
	c := roleCommand(t, "dies", "SAYS=first\nsecond \x1b[31mred\x1b[0m, key is hush-hush-hush", "PRINTS=out\n", "MY_API_KEY=hush-hush-hush")
	c.Args = append(c.Args, "--token", "sesame-open", "--api-key=abracadabra")
	d := failedStep(t, Server{Target: c, Mask: func(s string) string { return strings.ReplaceAll(s, "second", "2nd") }}).Diagnosis
	if got := strings.Join(d.Stderr, "|"); got != "first|2nd red, key is ****" {
		t.Errorf("stderr is %q", got)
	}
	if got := strings.Join(d.StrayStdout, "|"); got != "out" {
		t.Errorf("stray stdout is %q", got)
	}
	if got := strings.Join(d.Command, " "); got != c.Path+" -test.run=^$ --token **** --api-key=****" {
		t.Errorf("the command is %q", got)
	}
	if got := strings.Join(d.EnvNames, " "); got != "DOWEL_DOCTOR_TEST_ROLE GORACE MY_API_KEY PRINTS SAYS" {
		t.Errorf("the names are %q", got)
	}
}

func TestServerThatSaysNothing(t *testing.T) {
	for role, want := range map[string][2]string{
		"silent":  {"says nothing", "stdio mode"},
		"babbles": {"serves HTTP", "argument for stdio"},
		"chats":   {"debug: loading 3 plugins", "stderr"},
	} {
		t.Run(role, func(t *testing.T) {
			s := timedOutStep(t, Server{Target: roleCommand(t, role)}, hasOutput)
			checkContains(t, s.Detail, want[0])
			checkContains(t, s.Advice, want[1])
			if role != "silent" {
				return
			}
			checkContains(t, s.Detail, "no connection within ")
			if strings.Join(s.Diagnosis.Stderr, "") != "waiting for Godot" {
				t.Errorf("stderr is %q", s.Diagnosis.Stderr)
			}
		})
	}
}

func TestServerWithoutStdout(t *testing.T) {
	checkContains(t, failedStep(t, Server{Target: roleCommand(t, "mute")}).Detail, "closed its stdout")
}

func TestColdRunner(t *testing.T) {
	dir := t.TempDir()
	exe, _ := os.Executable()
	if err := os.Symlink(exe, filepath.Join(dir, "npx")); err != nil {
		t.Fatal(err)
	}
	c := roleCommand(t, "silent", "PATH="+dir)
	c.Path = "npx"
	s := failedStep(t, Server{Target: c, Options: client.Options{Limits: client.Limits{Install: 200 * time.Millisecond}}})
	checkContains(t, s.Detail, "npx may be downloading")
	checkContains(t, s.Advice, "once in a terminal")
	if s.Diagnosis.Command[0] != filepath.Join(dir, "npx") {
		t.Errorf("the program is %s", s.Diagnosis.Command[0])
	}
}

func writeFile(t *testing.T, file, text string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCommandThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	plain := writeFile(t, filepath.Join(dir, "plain"), "text", 0o644)
	writeFile(t, filepath.Join(dir, "weather-server"), "#!/bin/sh\n", 0o755)
	binary := writeFile(t, filepath.Join(dir, "binary"), "\x00\x01\x02", 0o755)
	lost := writeFile(t, filepath.Join(dir, "lost"), "#!/no/such/interpreter\n", 0o755)
	envScript := writeFile(t, filepath.Join(dir, "envscript"), "#!/usr/bin/env no-such-program-at-all\n", 0o755)
	python := writeFile(t, filepath.Join(dir, "script.xyz"), "", 0o755)
	for _, test := range []struct {
		name    string
		command stdio.Command
		step    string
		summary string
		advice  string
	}{
		{"no such name", stdio.Command{Path: "no-such-program-at-all"}, "command", "was not found", "Install no-such-program-at-all"},
		{"a name like another", stdio.Command{Path: "weather-servr", Env: map[string]string{"PATH": dir}}, "command", "PATH (1 folder)", "weather-server is there"},
		{"a command line", stdio.Command{Path: "npx -y server"}, "command", "was not found", "arguments as arguments"},
		{"no such path", stdio.Command{Path: filepath.Join(dir, "none")}, "command", "does not exist", "Correct the path"},
		{"a path like another", stdio.Command{Path: "./weather-sever", Dir: dir}, "command", "does not exist", "weather-server"},
		{"a home", stdio.Command{Path: "~/server"}, "command", "does not exist", "home folder"},
		{"a line with a path", stdio.Command{Path: "/opt/none/run fast"}, "command", "does not exist", "arguments as arguments"},
		{"a folder", stdio.Command{Path: dir}, "command", "is a folder", "in the folder"},
		{"not executable", stdio.Command{Path: plain}, "command", "is not executable", "chmod +x"},
		{"no program", stdio.Command{Path: binary}, "start", "neither a program", "built for this system"},
		{"no interpreter", stdio.Command{Path: lost}, "start", "interpreter", "first line names"},
		{"no program for env", stdio.Command{Path: envScript}, "command", "needs no-such-program-at-all", "Install no-such-program-at-all"},
		{"no folder", stdio.Command{Path: plain, Dir: filepath.Join(dir, "none")}, "folder", "does not exist", "Create the folder"},
		{"a file for a folder", stdio.Command{Path: plain, Dir: plain}, "folder", "is a file", "Name a folder"},
		{"a folder in a file", stdio.Command{Path: plain, Dir: filepath.Join(plain, "sub")}, "folder", "cannot be used", "accessible"},
		{"a bad variable", stdio.Command{Path: python, Env: map[string]string{"A=B": "c"}}, "environment", "environment variable", "Correct the name"},
		{"nothing", stdio.Command{}, "definition", "the command is empty", "Give the name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := failedStep(t, Server{Target: test.command})
			if s.Name != test.step || s.Diagnosis.Step != test.step {
				t.Errorf("the step is %q", s.Name)
			}
			checkContains(t, s.Detail, test.summary)
			checkContains(t, s.Advice, test.advice)

			_, err := client.Dial(t.Context(), test.command, &client.Options{Restart: client.Restart{Max: -1}})
			if err == nil {
				t.Fatal("it could be dialed")
			}
			d := Explain(err, Server{Target: test.command})
			if d.Step != test.step || d.Advice != s.Advice {
				t.Errorf("the diagnosis of the error is %+v", d)
			}
		})
	}
}

func TestScriptsNeedNoPermission(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, filepath.Join(dir, "server.sh"), "echo bye >&2; exit 7\n", 0o644)
	for _, c := range []stdio.Command{{Path: file}, {Path: "server.sh", Dir: dir}, {Path: "./server.sh", Dir: dir}} {
		s := failedStep(t, Server{Target: c})
		if s.Diagnosis.Exit != "exit status 7" || s.Diagnosis.Command[0] != file {
			t.Errorf("%+v", s.Diagnosis)
		}
		checkContains(t, s.Detail, "bye")
	}
}

func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, filepath.Join(dir, ".env"), "# comment\nexport SOME_KEY=abc\nOTHER = x\n", 0o600)
	for _, test := range []struct {
		name    string
		env     map[string]string
		envFile string
		status  Status
		detail  string
	}{
		{"clean", map[string]string{"A": "b"}, "", OK, "a minimal one, with A"},
		{"a file", map[string]string{"SOME_KEY": "abc", "OTHER": "x"}, file, OK, ".env"},
		{"a file that was not read", map[string]string{"SOME_KEY": "abc"}, file, Warning, "missing: OTHER"},
		{"an empty secret", map[string]string{"API_KEY": ""}, "", Warning, "API_KEY is empty"},
		{"a placeholder", map[string]string{"API_URL": "${API_URL}"}, "", Warning, "API_URL holds a placeholder"},
		{"an example", map[string]string{"API_KEY": "<your key here>"}, "", Warning, "API_KEY holds a placeholder"},
		{"no file", nil, filepath.Join(dir, "none"), Failed, "cannot be read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := stdio.Command{Path: "no-such-program-at-all", Env: test.env, CleanEnv: true}
			s := stepNamed(t, examineAll(t, Server{Target: c, EnvFile: test.envFile}), "environment")
			if s.Status != test.status {
				t.Errorf("the status is %s", s.Status)
			}
			checkContains(t, s.Detail, test.detail)
			if test.status != OK && s.Advice == "" {
				t.Error("the advice is missing")
			}
		})
	}
}

func TestConsumerMayStop(t *testing.T) {
	total := len(examineAll(t, Server{Target: roleCommand(t, "server")}))
	for n := range total {
		got := 0
		for range Examine(t.Context(), Server{Target: roleCommand(t, "server")}) {
			if got++; got > n {
				break
			}
		}
		if got != n+1 {
			t.Errorf("%d steps came, want %d", got, n+1)
		}
	}
}

func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var last Step
	for s := range Examine(ctx, Server{Target: roleCommand(t, "silent")}) {
		if last = s; s.Name == "start" {
			cancel()
		}
	}
	cancel()
	if last.Status != Failed || !errors.Is(last.Err, context.Canceled) {
		t.Errorf("the last step is %+v", last)
	}
	checkContains(t, last.Detail, "stopped")
}

// The callbacks in the options hear nothing of the examination.
func TestOwnersCallbacks(t *testing.T) {
	stderr := &strings.Builder{}
	c := roleCommand(t, "dies", "SAYS=last words")
	c.Stderr = stderr
	o := client.Options{
		OnState: func(s client.State) { t.Errorf("OnState was called with %v", s) },
		OnLog:   func(mcp.LoggingMessageParams) { t.Error("OnLog was called") },
	}
	s := failedStep(t, Server{Target: c, Options: o})
	checkContains(t, stderr.String(), "last words")
	checkContains(t, s.Diagnosis.Summary, "last words")
}

// No guess is made for names of one letter, since they resemble every short name.
func TestNoGuessOfOneLetter(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"[", "w", "ex", "server"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"x": "", "e": "", "xx": "ex", "servr": "server"} {
		if got := strings.Join(similarPrograms(name, []string{folder}), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
