package main

import (
	"fmt"
	"slices"
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
	failure string // the error with which the client fixture ended, or "": the suite does not record it
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

	Unchecked string   `json:"unchecked,omitempty"` // why the suite skips each of its checks
	Reasons   []string `json:"reasons,omitempty"`   // why it is red, expected or not
}

// judgeOutcome judges the outcome of a scenario. o is nil if the suite has written no results. Such
// a scenario is red even if red is expected, because a crash of the suite is not a missing feature.
func judgeOutcome(v verdict, o *outcome, e *expectations) verdict {
	v.Expected = e.expectedReason("red", v.Role, v.Scenario, "")
	if o == nil {
		v.Red, v.Reasons = true, []string{"it did not run"}
		return v
	}
	if skipsEach(o.checks) && o.failure == "" {
		if v.Unchecked = e.expectedReason("unchecked", v.Role, v.Scenario, ""); v.Unchecked != "" {
			return v
		}
	}
	for _, c := range o.checks {
		reason := "" // of a skipped check
		if c.Status == "SKIPPED" {
			reason = e.expectedReason("skipped", v.Role, v.Scenario, c.Name)
		}
		switch {
		case c.Status == "SUCCESS":
			v.Passed++
		case c.Status == "INFO":
		case reason != "":
			v.Skipped = append(v.Skipped, reason)
		default:
			v.Reasons = append(v.Reasons, fmt.Sprintf("%s %s (%s): %s", c.Status, c.ID, c.Name, describeCheck(c)))
		}
	}
	if v.Passed == 0 {
		v.Reasons = append(v.Reasons, "no check succeeded")
	}
	if o.failure != "" && e.expectedReason("error", v.Role, v.Scenario, "") == "" {
		v.Reasons = append(v.Reasons, "the client ended with an error: "+oneLine(o.failure))
	}
	switch {
	case v.Expected == "":
		v.Red = len(v.Reasons) > 0
	case len(v.Reasons) == 0:
		v.Red = true
		v.Reasons = []string{"it is expected to be red (" + v.Expected + ") but is green: remove it from the list"}
	}
	return v
}

// skipsEach reports whether the suite has skipped each check, and there is one.
func skipsEach(checks []check) bool {
	return len(checks) > 0 && !slices.ContainsFunc(checks, func(c check) bool { return c.Status != "SKIPPED" })
}

func describeCheck(c check) string {
	if c.Message != "" {
		return oneLine(c.Message)
	}
	return oneLine(c.Description)
}

// oneLine joins the words of a text with single spaces and cuts it after 300 bytes.
func oneLine(text string) string {
	const shown = 300
	if text = strings.Join(strings.Fields(text), " "); len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "…"
	}
	return text
}
