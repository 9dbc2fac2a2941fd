package main

import (
	"fmt"
	"strings"
)

// check is one check in the results of the suite.
type check struct {
	ID          string `json:"id"`   // of the requirement: several checks of a scenario may share one
	Name        string `json:"name"` // of the check
	Description string `json:"description"`
	Status      string `json:"status"` // SUCCESS, FAILURE, WARNING, SKIPPED or INFO
	Message     string `json:"errorMessage"`
}

// outcome is the result of a scenario.
type outcome struct {
	checks  []check
	failure string // how the client fixture ended, if not well: the suite does not judge that
}

// verdict is the judgment of a scenario.
type verdict struct {
	Role     string   `json:"role"`
	Revision string   `json:"revision"`
	Scenario string   `json:"scenario"`
	Red      bool     `json:"red"`
	Passed   int      `json:"passed"`             // checks
	Skipped  []string `json:"skipped,omitempty"`  // the listed reasons of skipped checks
	Expected string   `json:"expected,omitempty"` // why it is expected to be red
	Reasons  []string `json:"reasons,omitempty"`  // why it is red, expected or not
}

// judgeOutcome judges the outcome of a scenario. o is nil if the suite has written no results. Only
// a scenario that ran can be red as expected: a suite that crashes is not a missing feature.
func judgeOutcome(v verdict, o *outcome, e *expectations) verdict {
	v.Expected = e.expectedReason("red", v.Role, v.Scenario, "")
	if o == nil {
		v.Red, v.Reasons = true, []string{"it did not run"}
		return v
	}
	for _, c := range o.checks {
		excuse := ""
		if c.Status == "SKIPPED" {
			excuse = e.expectedReason("skipped", v.Role, v.Scenario, c.Name)
		}
		switch {
		case c.Status == "SUCCESS":
			v.Passed++
		case c.Status == "INFO":
		case excuse != "":
			v.Skipped = append(v.Skipped, excuse)
		default:
			v.Reasons = append(v.Reasons, fmt.Sprintf("%s %s (%s): %s", c.Status, c.ID, c.Name, describeCheck(c)))
		}
	}
	if v.Passed == 0 {
		v.Reasons = append(v.Reasons, "no check was a success")
	}
	if o.failure != "" && e.expectedReason("error", v.Role, v.Scenario, "") == "" {
		v.Reasons = append(v.Reasons, "the client did not end well: "+oneLine(o.failure))
	}
	switch {
	case v.Expected == "":
		v.Red = len(v.Reasons) > 0
	case len(v.Reasons) == 0:
		v.Red = true
		v.Reasons = []string{"it is expected to be red (" + v.Expected + ") and is green: take it off the list"}
	}
	return v
}

func describeCheck(c check) string {
	if c.Message != "" {
		return oneLine(c.Message)
	}
	return oneLine(c.Description)
}

// oneLine is a text on one line, and no more of it than fits there.
func oneLine(text string) string {
	const shown = 300
	if text = strings.Join(strings.Fields(text), " "); len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "…"
	}
	return text
}
