package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

var (
	roles     = []string{"server", "client"}
	revisions = []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
)

// extensionsWith is the revision with which the scenarios of extensions run: they name none themselves.
const extensionsWith = "2026-07-28"

// suite is the installed suite, with dowel as its peer.
type suite struct {
	folder    string
	results   string
	node      string
	program   string
	client    string              // the command of the client fixture
	url       string              // of the server fixture
	scenarios map[string][]string // by role and revision
	server    *exec.Cmd
	binaries  string
}

// openSuite finds the suite, builds the fixtures and starts the server.
func openSuite(ctx context.Context, folder, results string) (*suite, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	modules := filepath.Join(folder, "suite", "node_modules")
	s := &suite{
		folder: folder, results: results,
		node:    filepath.Join(modules, "node-"+runtime.GOOS+"-"+arch, "bin", "node"),
		program: filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js"),
	}
	for _, file := range []string{s.node, s.program} {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("the suite is not installed (%w): run %s", err, filepath.Join(folder, "install.sh"))
		}
	}
	if err := s.list(ctx); err != nil {
		return nil, err
	}
	if err := s.build(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// list asks the suite for its scenarios.
func (s *suite) list(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, s.node, s.program, "list").Output()
	if err != nil {
		return fmt.Errorf("the suite does not list its scenarios: %w", err)
	}
	s.scenarios = scenariosOf(string(out))
	if len(s.scenarios) == 0 {
		return errors.New("the suite lists no scenarios")
	}
	return nil
}

var listed = regexp.MustCompile(`^\s+- (\S+) \[([^\]]*)\]`)

// scenariosOf reads the suite's list, by role and revision.
func scenariosOf(list string) map[string][]string {
	all := map[string][]string{}
	role := ""
	for line := range strings.Lines(list) {
		switch {
		case strings.HasPrefix(line, "Server scenarios"):
			role = "server"
		case strings.HasPrefix(line, "Client scenarios"):
			role = "client"
		case strings.HasPrefix(line, "Authorization server"):
			role = "" // dowel is none
		}
		m := listed.FindStringSubmatch(line)
		if m == nil || role == "" {
			continue
		}
		for _, revision := range strings.Split(m[2], ",") {
			key := role + " " + strings.TrimSpace(revision)
			all[key] = append(all[key], m[1])
		}
	}
	return all
}

// build makes the fixtures and starts the server.
func (s *suite) build(ctx context.Context) error {
	binaries, err := os.MkdirTemp("", "conformance-fixtures")
	if err != nil {
		return err
	}
	s.binaries = binaries
	s.client = filepath.Join(binaries, "client")
	for _, fixture := range []string{"client", "server"} {
		build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(binaries, fixture), "./"+fixture)
		build.Dir = s.folder
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("the %s fixture cannot be built: %w\n%s", fixture, err, out)
		}
	}
	s.server = exec.Command(filepath.Join(binaries, "server"), "-http", "127.0.0.1:0")
	stderr, err := s.server.StderrPipe()
	if err == nil {
		err = s.server.Start()
	}
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server fixture does not say where it is: %w", err)
	}
	s.url = strings.TrimSpace(line)
	return nil
}

func (s *suite) close() {
	if s.server != nil && s.server.Process != nil {
		_ = s.server.Process.Signal(os.Interrupt)
		timer := time.AfterFunc(5*time.Second, func() { _ = s.server.Process.Kill() })
		defer timer.Stop()
		_ = s.server.Wait() // it has done its work
	}
	os.RemoveAll(s.binaries)
}

// judge runs the scenarios of a role and a revision.
func (s *suite) judge(ctx context.Context, role, revision, only string) ([]verdict, error) {
	e, err := readExpectations(filepath.Join(s.folder, "expected", revision+".txt"))
	if err != nil {
		return nil, err
	}
	wanted := slices.Clone(s.scenarios[role+" "+revision])
	var extensions []string
	if revision == extensionsWith {
		extensions = s.scenarios[role+" extension"]
		wanted = append(wanted, extensions...)
	}
	if only != "" {
		wanted = slices.DeleteFunc(wanted, func(name string) bool { return name != only })
	}
	slices.Sort(wanted)
	results := filepath.Join(s.results, role+"-"+revision)
	s.run(ctx, role, results, only, "--suite", "all", "--spec-version", revision)
	for _, name := range extensions {
		if only == "" || only == name {
			s.run(ctx, role, results, name)
		}
	}
	checks, err := collect(results, role)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var verdicts []verdict
	for _, name := range wanted {
		found, ran := checks[name]
		verdicts = append(verdicts, judge(verdict{Role: role, Revision: revision, Scenario: name}, found, ran, e))
	}
	if stale := e.unused(role); only == "" && len(stale) > 0 {
		return nil, fmt.Errorf("expected/%s.txt lists what does not happen: %s", revision, strings.Join(stale, ", "))
	}
	return verdicts, nil
}

// run runs the suite, which writes down what it sees. Its exit status says less than that.
func (s *suite) run(ctx context.Context, role, results, scenario string, more ...string) {
	args := []string{s.program, role, "-o", results}
	if role == "server" {
		args = append(args, "--url", s.url)
	} else {
		args = append(args, "--command", s.client)
	}
	if scenario != "" {
		args = append(args, "--scenario", scenario)
		more = slices.DeleteFunc(slices.Clone(more), func(word string) bool { return word == "--suite" || word == "all" })
	}
	cmd := exec.CommandContext(ctx, s.node, append(args, more...)...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(s.node)+string(os.PathListSeparator)+os.Getenv("PATH"))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintf(os.Stderr, "the suite could not be run: %v\n", err)
	}
	if err := os.MkdirAll(results, 0o755); err == nil {
		_ = os.WriteFile(filepath.Join(results, "suite.log"), said.Bytes(), 0o644) // for who keeps it
	}
}
