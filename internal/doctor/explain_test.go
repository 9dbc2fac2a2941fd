package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// Typical stderr output of servers that cannot start leads to the right summary and advice.
func TestComplaints(t *testing.T) {
	for _, test := range []struct{ stderr, summary, advice string }{
		{"Error: Cannot find module '/srv/build/index.js'\n    at Module._resolveFilename", "the file /srv/build/index.js does not exist", "Build the server"},
		{"Error: Cannot find module 'express'", "Node.js module express is missing", "npm install"},
		{"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/x.js", "zod", "npm install"},
		{"npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/no-such\nnpm error 404 'no-such@latest' is not in this registry.", "package no-such@latest", "package's name no-such@latest"},
		{"npm error 404  'no-such@*' is not in this registry.", "package no-such@*", "package's name no-such@*"},
		{"npm ERR! 404 Not Found - GET https://registry.npmjs.org/no-such", "npm does not know the package", "Correct the package's name"},
		{"npm error code ETARGET\nnpm error notarget No matching version found for a@99", "that version", "version"},
		{"npm error could not determine executable to run", "holds no program", "npx -p"},
		{"npm error code ENOTFOUND", "cannot reach its registry (ENOTFOUND)", "network"},
		{"npm error code EACCES", "may not write", "folder that npm names"},
		{"Error [ERR_REQUIRE_ESM]: require() of ES Module", "another version of Node.js", "Update Node.js"},
		{"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "out of memory", "NODE_OPTIONS"},
		{"Traceback (most recent call last):\n  File \"x.py\"\nModuleNotFoundError: No module named 'mcp.server'", "Python module mcp.server", "uvx"},
		{"/usr/bin/python3: No module named weather", "Python module weather", "uvx"},
		{"python3: can't open file '/srv/x.py': [Errno 2] No such file or directory", "/srv/x.py does not exist", "Correct the path"},
		{"  × No solution found when resolving tool dependencies:\n  ╰─▶ Because mcp-server-nope was not found in the package registry", "the Python package mcp-server-nope does not exist", "name mcp-server-nope"},
		{"  × No solution found when resolving tool dependencies", "no compatible versions", "version of Python"},
		{"An executable named `weather` is not provided by package `w`.", "no program weather", "uvx --from"},
		{"permission denied while trying to connect to the Docker daemon socket", "no permission to use Docker", "group docker"},
		{"docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", "daemon does not run", "Start Docker"},
		{"error during connect: open //./pipe/dockerDesktopLinuxEngine", "daemon does not run", "Start Docker"},
		{"docker: Error response from daemon: pull access denied for mcp/nope", "cannot be pulled", "name of the image"},
		{`docker: Error response from daemon: Conflict. The container name "/weather" is already in use`, "container named weather", "docker rm -f weather"},
		{"the input device is not a TTY", "terminal", "Remove -t"},
		{"/usr/bin/env: ‘node’: No such file or directory", "node was not found", "Install node"},
		{"env: node: No such file or directory", "node was not found", "Install node"},
		{"sh: 1: weather-server: not found", "weather-server was not found", "Install weather-server"},
		{"bash: line 1: jq: command not found", "jq was not found", "Install jq"},
		{"./x: /lib/libc.so.6: version `GLIBC_2.38' not found", "does not fit", "build of the server"},
		{"Error: Unable to access jarfile x.jar", "x.jar does not exist", "Correct the path"},
		{"java.lang.UnsupportedClassVersionError: x", "newer Java", "Update the Java"},
		{"Error: listen EADDRINUSE: address already in use :::3000", "port 3000", "listens on port 3000"},
		{"listen tcp 127.0.0.1:8080: bind: address already in use", "port 8080", "port 8080"},
		{"OSError: [Errno 98] Address already in use", "port of the server", "that port"},
		{"write: no space left on device", "disk is full", "Make room"},
		{"Error: EACCES: permission denied, open '/data/x'", "may not use /data/x", "read and write /data/x"},
		{"PermissionError: [Errno 13] Permission denied: '/data/y'", "may not use /data/y", "/data/y"},
		{"Error: ENOENT: no such file or directory, scandir '/data/z'", "/data/z does not exist", "/data/z"},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'cfg.json'", "cfg.json does not exist", "cfg.json"},
		{"Error: self-signed certificate in certificate chain", "does not trust", "NODE_EXTRA_CA_CERTS"},
		{"Error: connect ECONNREFUSED 127.0.0.1:5432", "cannot reach 127.0.0.1:5432", "Start the service that the server uses at 127.0.0.1:5432"},
		{"HTTP 401 Unauthorized", "credentials are refused", "Renew"},
		{"error: unknown option '--stdio'", "argument --stdio", "Correct the argument --stdio"},
		{"x.py: error: unrecognized arguments: --fast", "argument --fast", "Correct the argument --fast"},
		{"flag provided but not defined: -port", "argument -port", "-port"},
		{"Usage: mcp-server-filesystem <allowed-directory>", "other arguments", "usage"},
		{"panic: runtime error: index out of range", "the server crashed: panic: runtime error: index out of range", "report this error"},
		{"/srv/x.js:1\nthrow new Error(\"boom: API key missing\")\n^\n\nError: boom: API key missing\n" + strings.Repeat("    at f (/srv/x.js:1:7)\n", 12) + "\nNode.js v22.23.3",
			": Error: boom: API key missing", "this error names"},
		{"Traceback (most recent call last):\n  File \"x.py\", line 3, in <module>\n    f()\nValueError: the port is no number\nbye", ": ValueError: the port is no number", "this error names"},
		{"Error: GITHUB_TOKEN environment variable is not set", "GITHUB_TOKEN is not set", "GITHUB_TOKEN a value"},
		{"Missing required variable: SLACK_TEAM_ID", "SLACK_TEAM_ID is not set", "SLACK_TEAM_ID"},
		{"Please set BRAVE_API_KEY", "BRAVE_API_KEY is not set", "BRAVE_API_KEY"},
		{"KeyError: 'APIKEY'", "APIKEY is not set", "APIKEY"},
		{"PRESENT_KEY is required and IS_CLEAN was empty; it failed: no idea", "failed: no idea", "Fix the problem"},
		{"starting\nfatal: the moon is full\nbye", "fatal: the moon is full", "Fix the problem"},
		{"starting\nbye", "bye", "Fix the problem"},
		{"dowel: the server notes has no folder yet\nsee dowel serve --help", "notes has no folder yet", "Fix the problem"},
		{"the port is no number\n\nFor more information, try '--help'.", "port is no number", "Fix the problem"},
	} {
		t.Run(test.stderr[:min(len(test.stderr), 40)], func(t *testing.T) {
			c := stdio.Command{Path: "server", Env: map[string]string{"PRESENT_KEY": "x", "IS_CLEAN": "y"}}
			err := fmt.Errorf("dial server: %w", &stdio.ExitError{Command: "server", Stderr: test.stderr})
			d := Explain(err, Server{Target: c})
			checkContains(t, d.Summary, "the process ended", test.summary)
			checkContains(t, d.Advice, test.advice)
			isSentence(t, d.Advice)
			if strings.Contains(d.Summary+d.Advice, "$") || d.Step != "handshake" || d.Exit == "" || len(d.Stderr) == 0 {
				t.Errorf("%+v", d)
			}
		})
	}
}

// exitOf runs a shell script and returns the error of its exit.
func exitOf(t *testing.T, script string) error {
	t.Helper()
	child, err := process.Command{Path: "/bin/sh", Args: []string{"-c", script}}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	defer child.Close()
	return child.ExitError()
}

func TestExitStatus(t *testing.T) {
	for script, want := range map[string][2]string{
		"exit 127":       {"exit status 127", "programs that the command starts"},
		"exit 126":       {"exit status 126", "executable"},
		"exit 0":         {"said nothing", "stdio mode"},
		"exit 5":         {"exit status 5", "in a terminal"},
		"kill -SEGV $$":  {"segmentation fault", "report the crash"},
		"kill -KILL $$":  {"killed", "memory runs out"},
		"echo x >&2;:":   {"x", "Fix the problem"},
		"exit 3 # again": {"exit status 3", "in a terminal"},
	} {
		t.Run(script, func(t *testing.T) {
			d := Explain(exitOf(t, script), Server{Target: []string{"/bin/sh"}})
			checkContains(t, d.Summary, want[0])
			checkContains(t, d.Advice, want[1])
			isSentence(t, d.Advice)
		})
	}
}

func TestMissingPrograms(t *testing.T) {
	for _, test := range []struct {
		name string
		near []string
		want string
	}{
		{"npx", []string{"npm"}, "Install Node.js (https://nodejs.org), which npx is part of, or give the full path of npx."},
		{"UVX.exe", nil, "Install uv (https://docs.astral.sh/uv), which UVX.exe is part of, or give the full path of UVX.exe."},
		{"uv", nil, "Install uv (https://docs.astral.sh/uv), or give its full path."},
		{"docker", nil, "Install Docker (https://docs.docker.com/get-docker), or give its full path."},
		{"python", []string{"python3"}, "Write python3 in place of python, or install Python."},
		{"wether", []string{"weather"}, "Correct the name (weather is there), or install wether."},
		{"zzz", nil, "Install zzz, correct its name, or give its full path."},
	} {
		if got := adviseInstall(test.name, test.near); got != test.want {
			t.Errorf("%s: %s", test.name, got)
		}
	}
	for name := range products {
		isSentence(t, adviseInstall(name, nil))
	}
}

func TestWrapping(t *testing.T) {
	if got := batchFileNote("windows", `C:\node\npx.CMD`); !strings.Contains(got, "cmd.exe") {
		t.Error(got)
	}
	if got := batchFileNote("linux", "/bin/npx.cmd"); got != "" {
		t.Error(got)
	}
}

// These errors cannot be provoked on this machine's network.
func TestNetworkErrors(t *testing.T) {
	dial := func(err error) error {
		return fmt.Errorf("%w: %w", mcp.ErrConnection, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}, Err: err})
	}
	for _, test := range []struct {
		name            string
		err             error
		step            string
		summary, advice string
	}{
		{"no route", dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "connect", "no route to the server at 10.0.0.1:80", "VPN"},
		{"no network", dial(os.NewSyscallError("connect", syscall.ENETUNREACH)), "connect", "no route", "VPN"},
		{"a timeout", dial(os.ErrDeadlineExceeded), "connect", "the address does not answer at 10.0.0.1:80", "firewalls"},
		{"anything else", dial(errors.New("odd")), "connect", "no connection at 10.0.0.1:80: odd", "VPN"},
		{"a name that is not found", &net.DNSError{Name: "x.example", IsNotFound: true}, "name", "x.example does not exist", "Correct the host name"},
		{"a name server", &net.DNSError{Name: "x.example", Err: "server misbehaving"}, "name", "server misbehaving", "name server"},
		{"a reset", fmt.Errorf("%w: %w", mcp.ErrConnection, syscall.ECONNRESET), "handshake", "hangs up", "log of the server"},
		{"a limit", &client.TimeoutError{Kind: client.TimeoutConnect, After: time.Minute}, "handshake", "no connection within 1m0s", "hangs"},
		{"a deadline", context.DeadlineExceeded, "handshake", "took too long", "hangs"},
		{"a stop", context.Canceled, "handshake", "stopped", "Try again"},
		{"no idea", errors.New("odd"), "handshake", "odd", "--wire"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := Explain(test.err, Server{Target: "http://x.example/mcp"})
			if d.Step != test.step {
				t.Errorf("the step is %s", d.Step)
			}
			checkContains(t, d.Summary, test.summary)
			checkContains(t, d.Advice, test.advice)
			isSentence(t, d.Advice)
		})
	}
	e := newEvidence(dial(syscall.ECONNREFUSED), Server{Target: "http://x.example"})
	e.refusedAddresses = []string{"[::1]:80: connection refused", "10.0.0.1:80: connection refused"}
	checkContains(t, e.buildDiagnosis().Summary, "[::1]:80: connection refused; 10.0.0.1:80")
	e = newEvidence(context.DeadlineExceeded, Server{Target: "http://x.example"})
	e.stage = stepName
	checkContains(t, e.buildDiagnosis().Summary, "name server does not answer")
}

func TestRedirectsWithoutAPlace(t *testing.T) {
	d := Explain(&streamable.HTTPError{Status: 304, Header: http.Header{}}, Server{Target: "http://x.example"})
	isSentence(t, d.Advice)
	d = Explain(&streamable.HTTPError{Status: 502, Header: http.Header{}}, Server{Target: 7})
	checkContains(t, d.Advice, "behind this address")
	if d.Command != nil {
		t.Errorf("%+v", d)
	}
}

// Explain uses the output that the caller kept if the error does not contain it.
func TestExplainUsesKeptOutput(t *testing.T) {
	p := Server{Target: []string{"server"}, Stderr: []string{"one", "Error: Cannot find module 'x'"}, StrayStdout: []string{"\x1b[1mhello\x1b[0m"}}
	d := Explain(&client.TimeoutError{Kind: client.TimeoutConnect, After: time.Second}, p)
	checkContains(t, d.Summary, "no connection within 1s: the Node.js module x is missing")
	if strings.Join(d.Stderr, "|") != "one|Error: Cannot find module 'x'" || strings.Join(d.StrayStdout, "|") != "hello" {
		t.Errorf("%+v", d)
	}
	p.Stderr, p.StrayStdout = nil, nil
	d = Explain(errors.New("no answer; the server's last words on stderr:\n\tone\n\ttwo"), p)
	if strings.Join(d.Stderr, "|") != "one|two" {
		t.Errorf("%+v", d)
	}
	d = Explain(&stdio.ExitError{Command: "server", Stderr: "…half a secret\nwhole"}, p)
	if strings.Join(d.Stderr, "|") != "whole" {
		t.Errorf("%+v", d)
	}
	p.Stderr = []string{"all of the secret", "whole"}
	d = Explain(&stdio.ExitError{Command: "server", Stderr: "…half a secret\nwhole"}, p)
	if strings.Join(d.Stderr, "|") != "all of the secret|whole" {
		t.Errorf("%+v", d)
	}
}

func TestExplainNamesTheProgram(t *testing.T) {
	d := Explain(errors.New("odd"), Server{Target: stdio.Command{Path: "sh", Args: []string{"-c", "true"}, Env: map[string]string{"PATH": "/bin"}}})
	if strings.Join(d.Command, " ") != "/bin/sh -c true" {
		t.Errorf("%q", d.Command)
	}
}

func TestStrays(t *testing.T) {
	var s StdoutTail
	seen := 0
	tap := s.Tap(func(transport.Frame) { seen++ })
	sent := func(frame string) { tap(transport.Frame{Kind: transport.Sent, Data: []byte(frame)}) }
	stray := func(line string) { tap(transport.Frame{Kind: transport.Malformed, Data: []byte(line)}) }
	sent(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`)
	stray("first process")
	sent(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	sent(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	sent(`rubbish`)
	if got := s.Lines(); len(got) != 1 {
		t.Errorf("%q", got)
	}
	sent(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	for i := range 12 {
		stray(fmt.Sprintf("line %d", i))
	}
	if got := strings.Join(s.Lines(), " "); !strings.HasPrefix(got, "line 2 ") || !strings.HasSuffix(got, "line 11") {
		t.Errorf("%q", got)
	}
	if seen != 5+13 {
		t.Errorf("%d frames were shown to the next tap", seen)
	}
}

func TestTail(t *testing.T) {
	var s stderrTail
	for i := range 5000 {
		fmt.Fprintf(&s, "line %04d with a few words\n", i)
	}
	if got := s.lastLines(); len(got) != 10 || got[9] != "line 4999 with a few words" {
		t.Errorf("%q", got)
	}
	s.reset()
	_, _ = io.WriteString(&s, strings.Repeat("x", 20<<10)+"\nend")
	if got := s.lastLines(); len(got) != 1 || got[0] != "end" {
		t.Errorf("a line without its beginning is told: %d", len(got))
	}
}

func TestMask(t *testing.T) {
	m := &masker{}
	m.addCommand(&stdio.Command{
		Env:  map[string]string{"API_KEY": "abcdef-1", "SHORT_TOKEN": "abc", "NAME": "plain-value"},
		Args: []string{"--header", "Authorization: Bearer tok-en-tok-en", "X-Api-Key:hush-hush", "--secret=open-sesame", "--password", "pass-word", "--token", "--verbose", "https://u:p@h/x"},
	})
	for text, want := range map[string]string{
		"key abcdef-1, abc, plain-value":                  "key ****, abc, plain-value",
		"tok-en-tok-en hush-hush open-sesame pass-word":   "**** **** **** ****",
		"https://user:secret@host/path":                   "https://user:****@host/path",
		"Authorization: Bearer eyJhbGciOiJIUzI1NiJ9":      "Authorization: Bearer ****",
		"a ghp_0123456789abcdef0123 token":                "a **** token",
		"--verbose mail@example.com //x http://host:80/x": "--verbose mail@example.com //x http://host:80/x",
		"": "",
	} {
		if got := m.maskText(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("x", 290) + "abcdef-1" + strings.Repeat("y", 50)
	if got := m.maskLines([]string{long})[0]; strings.Contains(got, "abc") || len([]rune(got)) != lineRunes+1 {
		t.Errorf("half a secret is told: %s", got[280:])
	}
}

// A server that asks for the key of a model, which it does not inherit, gets the line for its
// entry.
func TestExplainModelKey(t *testing.T) {
	p := Server{Name: "s", Target: stdio.Command{Path: "server"}}
	d := Explain(&stdio.ExitError{Command: "server", Stderr: "KeyError: 'OPENAI_API_KEY'"}, p)
	checkContains(t, d.Summary, "OPENAI_API_KEY is not set")
	checkContains(t, d.Advice, `add "env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}"}`)
	p.Target = stdio.Command{Path: "server", Env: map[string]string{"OPENAI_API_KEY": "given"}}
	if d = Explain(&stdio.ExitError{Command: "server", Stderr: "OPENAI_API_KEY is invalid"}, p); strings.Contains(d.Advice, `"env"`) {
		t.Errorf("the key is given, and still: %s", d.Advice)
	}
}
