package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

var (
	roles     = []string{"server", "client"}
	revisions = []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
)

// suite is the installed suite.
type suite struct {
	folder    string // of this package
	node      string
	program   string
	version   string
	scenarios map[string][]string // by role and revision, and by role and "extension"
}

// openSuite finds the suite and asks it for its scenarios.
func openSuite(ctx context.Context, folder string) (*suite, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	const name = "@modelcontextprotocol/conformance"
	modules := filepath.Join(folder, "suite", "node_modules")
	s := &suite{folder: folder, program: filepath.Join(modules, filepath.FromSlash(name), "dist", "index.js")}
	var pinned, installed struct {
		Version      string            `json:"version"`
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := readJSON(filepath.Join(folder, "suite", "package.json"), &pinned); err != nil {
		return nil, fmt.Errorf("-folder %s does not contain suite/package.json: %w", folder, err)
	}
	err = readJSON(filepath.Join(modules, filepath.FromSlash(name), "package.json"), &installed)
	if s.version = pinned.Dependencies[name]; err != nil || installed.Version != s.version {
		return nil, fmt.Errorf("version %s of the suite is not installed (found %q): run %s", s.version, installed.Version,
			filepath.Join(folder, "install.sh"))
	}
	if s.node, err = findNode(ctx, modules); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, s.node, s.program, "list").Output()
	if err != nil {
		return nil, fmt.Errorf("the suite does not list its scenarios: %w", err)
	}
	s.scenarios = scenariosOf(string(out))
	for _, role := range roles {
		if len(s.scenarios[role+" "+revisions[len(revisions)-1]]) == 0 {
			return nil, fmt.Errorf("the suite lists no scenarios of a %s: if the form of its list has changed, adapt scenariosOf", role)
		}
	}
	return s, nil
}

func readJSON(path string, into any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// oldestNode is the first major version of Node that the suite runs on.
const oldestNode = 22

// findNode returns the Node that install.sh has installed with the suite, else the one in PATH.
func findNode(ctx context.Context, modules string) (string, error) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	beside := filepath.Join(modules, "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	const needed = "the suite needs Node %d or newer, which is neither in %s nor in PATH: %s"
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return "", fmt.Errorf(needed, oldestNode, beside, err)
	}
	version := strings.TrimSpace(string(out))
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return "", fmt.Errorf(needed, oldestNode, beside, "found "+version)
	}
	return exec.LookPath("node")
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
			role = "" // dowel is not an authorization server
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

// extensionScenarios returns the scenarios of extensions that run in a revision. The suite's list
// names no revision for them. Its requirements have authorization from 2025-11-25 on, and all other
// extensions from 2026-07-28 on.
func (s *suite) extensionScenarios(role, revision string) (names []string) {
	for _, name := range s.scenarios[role+" extension"] {
		if revision == "2026-07-28" || revision == "2025-11-25" && strings.HasPrefix(name, "auth/") {
			names = append(names, name)
		}
	}
	return names
}

// hasScenario reports whether the suite has a scenario in any revision.
func (s *suite) hasScenario(scenario string) bool {
	for _, names := range s.scenarios {
		for _, name := range names {
			if name == scenario {
				return true
			}
		}
	}
	return false
}
