package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// check is what the suite writes down of one thing that it has looked at.
type check struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Status      string `json:"status"` // SUCCESS, FAILURE, WARNING, SKIPPED or INFO
	Message     string `json:"errorMessage"`
}

// verdict is what a scenario comes to.
type verdict struct {
	Role     string   `json:"role"`
	Revision string   `json:"revision"`
	Scenario string   `json:"scenario"`
	Red      bool     `json:"red"`
	Passed   int      `json:"passed"`             // checks
	Skipped  int      `json:"skipped,omitempty"`  // checks, each for a reason that is listed
	Expected string   `json:"expected,omitempty"` // why it is expected to be red
	Reasons  []string `json:"reasons,omitempty"`  // why it is red, expected or not
}

// expectations are what is known to be red or skipped, with the reason.
type expectations struct {
	red     []rule // by scenario
	skipped []rule // by scenario and check
}

type rule struct {
	role, scenario, check, reason string
	used                          bool
}

// readExpectations reads lines of the form
//
//	red ROLE SCENARIO: reason            SCENARIO may end in *
//	skipped ROLE SCENARIO CHECK: reason
func readExpectations(path string) (*expectations, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var e expectations
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		what, reason, _ := strings.Cut(text, ": ")
		words := strings.Fields(what)
		switch {
		case reason == "":
			return nil, fmt.Errorf("%s:%d: there is no reason behind a colon", path, number)
		case len(words) == 3 && words[0] == "red":
			e.red = append(e.red, rule{role: words[1], scenario: words[2], reason: reason})
		case len(words) == 4 && words[0] == "skipped":
			e.skipped = append(e.skipped, rule{role: words[1], scenario: words[2], check: words[3], reason: reason})
		default:
			return nil, fmt.Errorf("%s:%d: write \"red ROLE SCENARIO: reason\" or \"skipped ROLE SCENARIO CHECK: reason\"", path, number)
		}
	}
	return &e, lines.Err()
}

func find(rules []rule, role, scenario, check string) string {
	for i := range rules {
		r := &rules[i]
		prefix, wild := strings.CutSuffix(r.scenario, "*")
		if r.role == role && r.check == check && (r.scenario == scenario || wild && strings.HasPrefix(scenario, prefix)) {
			r.used = true
			return r.reason
		}
	}
	return ""
}

// unused lists the rules that nothing came of.
func (e *expectations) unused(role string) (stale []string) {
	for _, r := range slices.Concat(e.red, e.skipped) {
		if r.role == role && !r.used {
			stale = append(stale, strings.TrimSpace(r.scenario+" "+r.check))
		}
	}
	return stale
}

// judge makes a verdict of the checks of a scenario; ran is false where the suite has written none down.
func judge(v verdict, checks []check, ran bool, e *expectations) verdict {
	if !ran {
		v.Reasons = append(v.Reasons, "it did not run")
	}
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			v.Passed++
		case "INFO":
		case "SKIPPED":
			if find(e.skipped, v.Role, v.Scenario, c.ID) != "" {
				v.Skipped++
				continue
			}
			fallthrough
		default:
			v.Reasons = append(v.Reasons, fmt.Sprintf("%s %s: %s", c.Status, c.ID, said(c)))
		}
	}
	if ran && v.Passed == 0 {
		v.Reasons = append(v.Reasons, "no check was a success")
	}
	v.Expected = find(e.red, v.Role, v.Scenario, "")
	switch {
	case v.Expected == "":
		v.Red = len(v.Reasons) > 0
	case len(v.Reasons) == 0:
		v.Red = true
		v.Reasons = []string{"it is expected to be red (" + v.Expected + ") and is green: take it off the list"}
	}
	return v
}

func said(c check) string {
	text := c.Message
	if text == "" {
		text = c.Description
	}
	const shown = 300
	if text = strings.Join(strings.Fields(text), " "); len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "…"
	}
	return text
}

// stamp is what the suite appends to a scenario's name.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// collect reads what the suite has written down, by scenario.
func collect(folder, role string) (map[string][]check, error) {
	all := map[string][]check{}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []check
		if err := json.Unmarshal(raw, &checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name, err := filepath.Rel(folder, filepath.Dir(path))
		if err != nil {
			return err
		}
		name = stamp.ReplaceAllString(filepath.ToSlash(name), "")
		if role == "server" {
			name = strings.TrimPrefix(name, "server-")
		}
		all[name] = append(all[name], checks...)
		return nil
	})
	return all, err
}
