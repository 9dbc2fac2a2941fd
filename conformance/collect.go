package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// stamp matches the time that the suite appends to the name of a scenario.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// collectOutcomes reads the results that the suite has written, by scenario: NAME-TIME/checks.json
// below folder, and the client's output in the same folder. It leaves out a scenario without
// checks.json, which the suite writes last.
func collectOutcomes(folder, role string) (map[string]*outcome, error) {
	all := map[string]*outcome{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		name, err := filepath.Rel(folder, filepath.Dir(path))
		if err != nil {
			return err
		}
		name = stamp.ReplaceAllString(filepath.ToSlash(name), "")
		if role == "server" {
			name = strings.TrimPrefix(name, "server-")
		}
		if all[name] != nil {
			return fmt.Errorf("%s: %s ran twice", path, name)
		}
		all[name], err = readOutcome(path, role)
		return err
	})
	return all, err
}

func readOutcome(path, role string) (*outcome, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var o outcome
	if err := json.Unmarshal(raw, &o.checks); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if role == "client" {
		o.failure = readFailure(filepath.Dir(path))
	}
	return &o, nil
}

// readFailure returns "" if the client fixture has printed done. Otherwise it returns the text of a
// panic, or the last line of stderr. The suite kills a client after 30 seconds.
func readFailure(folder string) string {
	if out, err := os.ReadFile(filepath.Join(folder, "stdout.txt")); err == nil && strings.HasSuffix(string(out), "done\n") {
		return ""
	}
	said, _ := os.ReadFile(filepath.Join(folder, "stderr.txt"))
	text := strings.TrimSpace(string(said))
	if at := strings.Index(text, "panic: "); at >= 0 {
		return text[at:]
	}
	if last := text[strings.LastIndexByte(text, '\n')+1:]; last != "" {
		return last
	}
	return "it did not finish, and wrote nothing to stderr"
}
