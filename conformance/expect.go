package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
)

// expectations lists the scenarios of one revision that are known to be red, the scenarios and the
// checks that the suite is known to skip, and the scenarios in which the client is right to end
// with an error. Each has a reason.
type expectations struct {
	rules []*rule
}

type rule struct {
	kind     string // red, unchecked, skipped or error
	role     string
	scenario string // may end in *
	check    string // the name of a skipped check
	reason   string
	used     bool
}

func (r *rule) String() string {
	return strings.TrimSpace(strings.Join([]string{r.kind, r.role, r.scenario, r.check}, " "))
}

// readExpectations reads lines of the form
//
//	red ROLE SCENARIO: reason              it is not green yet; SCENARIO may end in *
//	unchecked ROLE SCENARIO: reason        the suite skips each check of the scenario
//	skipped ROLE SCENARIO CHECK: reason    CHECK is a check's name, since several share an id
//	error client SCENARIO: reason          the client fixture is right to end with an error
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
		r, err := parseRule(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		e.rules = append(e.rules, r)
	}
	return &e, lines.Err()
}

func parseRule(text string) (*rule, error) {
	subject, reason, _ := strings.Cut(text, ": ")
	words := strings.Fields(subject)
	if strings.TrimSpace(reason) == "" {
		return nil, fmt.Errorf("the line has no reason: write it after a colon")
	}
	if len(words) < 3 || !slices.Contains(roles, words[1]) {
		return nil, fmt.Errorf("write KIND ROLE SCENARIO: reason, with a role of %s", strings.Join(roles, " or "))
	}
	r := &rule{kind: words[0], role: words[1], scenario: words[2], check: strings.Join(words[3:], " "), reason: reason}
	switch {
	case r.kind == "red" && r.check == "", r.kind == "unchecked" && r.check == "", r.kind == "skipped" && r.check != "", r.kind == "error" && r.check == "" && r.role == "client":
		return r, nil
	}
	return nil, fmt.Errorf(`write "red ROLE SCENARIO", "unchecked ROLE SCENARIO", "skipped ROLE SCENARIO CHECK" or "error client SCENARIO" before the colon`)
}

// expectedReason returns the reason of the rule that matches, or "" if none does.
func (e *expectations) expectedReason(kind, role, scenario, check string) string {
	for _, r := range e.rules {
		prefix, wild := strings.CutSuffix(r.scenario, "*")
		if r.kind == kind && r.role == role && r.check == check && (r.scenario == scenario || wild && strings.HasPrefix(scenario, prefix)) {
			r.used = true
			return r.reason
		}
	}
	return ""
}

// staleRules returns a red verdict for each rule that matched nothing.
func (e *expectations) staleRules(role, revision string) (all []verdict) {
	for _, r := range e.rules {
		if r.role == role && !r.used {
			all = append(all, verdict{Role: role, Revision: revision, Scenario: r.scenario, Red: true,
				Reasons: []string{fmt.Sprintf("expected/%s.txt lists %q, which did not happen: remove the line", revision, r)}})
		}
	}
	return all
}
