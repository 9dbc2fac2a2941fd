// Package report prints the outcome of checks as JSON lines, like the scripts in ../../node.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Limit bounds one check.
const Limit = 20 * time.Second

// Check is one line of the output: the name of a check, its outcome, and the error if it failed.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Report runs checks and prints a line for each. It is not for concurrent use.
type Report struct {
	out     io.Writer
	without map[string]bool
	ran     int
	failed  int
	unknown map[string]bool
}

// New returns a report that leaves out the checks named in without.
func New(out io.Writer, without []string) *Report {
	r := &Report{out: out, without: map[string]bool{}, unknown: map[string]bool{}}
	for _, name := range without {
		r.without[name], r.unknown[name] = true, true
	}
	return r
}

// Run runs a check, unless it is left out. A check that takes longer than Limit fails; its
// goroutine is abandoned.
func (r *Report) Run(name string, check func() error) {
	delete(r.unknown, name)
	if r.without[name] {
		return
	}
	r.ran++
	done := make(chan error, 1)
	go func() { done <- check() }()
	select {
	case err := <-done:
		r.print(name, err)
	case <-time.After(Limit):
		r.print(name, fmt.Errorf("it did not end within %v", Limit))
	}
}

// Finish returns the process's exit code: 0 if at least one check ran and none failed.
func (r *Report) Finish() int {
	for name := range r.unknown {
		r.print(name, fmt.Errorf("left out, but the name is unknown"))
	}
	if r.ran == 0 {
		r.print("checks", fmt.Errorf("none ran"))
	}
	if r.failed > 0 {
		return 1
	}
	return 0
}

func (r *Report) print(name string, err error) {
	line := Check{Name: name, OK: err == nil}
	if err != nil {
		r.failed++
		line.Detail = err.Error()
	}
	data, _ := json.Marshal(line) // three plain fields cannot fail
	fmt.Fprintf(r.out, "%s\n", data)
}
