package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// runner runs scenarios of the suite with the fixtures as its peer.
type runner struct {
	*suite
	fixtures string         // folder of the fixtures' programs
	server   *serverFixture // nil if only clients are tested
	results  string         // folder to which the suite writes
}

// plan is the list of scenarios of one role in one revision.
type plan struct {
	role, revision string
	only           string   // the one scenario, if not all
	scenarios      []string // by name, extensions included
	extensions     []string
}

func (s *suite) newPlan(role, revision, only string) plan {
	p := plan{role: role, revision: revision, only: only, extensions: s.extensionScenarios(role, revision)}
	p.scenarios = slices.Concat(s.scenarios[role+" "+revision], p.extensions)
	if only != "" {
		other := func(name string) bool { return name != only }
		p.scenarios, p.extensions = slices.DeleteFunc(p.scenarios, other), slices.DeleteFunc(p.extensions, other)
	}
	slices.Sort(p.scenarios)
	return p
}

// judgePlan runs a plan and judges its outcomes. It returns an error if the suite could not run,
// not if a scenario failed.
func (r *runner) judgePlan(ctx context.Context, p plan) ([]verdict, error) {
	e, err := readExpectations(filepath.Join(r.folder, "expected", p.revision+".txt"))
	if err != nil {
		return nil, err
	}
	results := filepath.Join(r.results, p.role+"-"+p.revision)
	if err := r.runPlan(ctx, p, results); err != nil {
		return nil, err
	}
	outcomes, err := collectOutcomes(results, p.role)
	if err != nil {
		return nil, err
	}
	return judgeAll(p, outcomes, e), nil
}

// judgeAll judges every planned scenario, every unplanned one that ran, and the list of
// expectations.
func judgeAll(p plan, outcomes map[string]*outcome, e *expectations) (all []verdict) {
	for _, name := range p.scenarios {
		all = append(all, judgeOutcome(verdict{Role: p.role, Revision: p.revision, Scenario: name}, outcomes[name], e))
	}
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		if !slices.Contains(p.scenarios, name) {
			all = append(all, verdict{Role: p.role, Revision: p.revision, Scenario: name, Red: true,
				Reasons: []string{"it ran although the suite does not list it for this revision"}})
		}
	}
	if p.only == "" {
		all = append(all, e.staleRules(p.role, p.revision)...)
	}
	return all
}

// runPlan runs the suite, which writes its results. With --force, extension scenarios run in this
// revision; without it, in none or in one that the suite chooses.
func (r *runner) runPlan(ctx context.Context, p plan, results string) error {
	if err := os.MkdirAll(results, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(results, "suite.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	common := []string{p.role, "--spec-version", p.revision, "-o", results}
	if p.role == "server" {
		common = append(common, "--url", r.server.url)
	} else {
		common = append(common, "--command", clientCommand)
	}
	var calls [][]string
	switch {
	case p.only == "":
		calls = append(calls, []string{"--suite", "all"})
	case len(p.extensions) == 0:
		calls = append(calls, []string{"--scenario", p.only})
	}
	for _, name := range p.extensions {
		calls = append(calls, []string{"--scenario", name, "--force"})
	}
	for _, call := range calls {
		if err := r.invokeSuite(ctx, log, append(slices.Clone(common), call...)); err != nil {
			return err
		}
		if p.role == "server" {
			if err := r.server.checkAlive(); err != nil {
				return err
			}
		}
	}
	return nil
}

// suiteTimeout bounds one run of the suite, which takes a few seconds.
const suiteTimeout = 10 * time.Minute

// invokeSuite runs the suite once. It ignores the exit status, because the results say more.
func (r *runner) invokeSuite(ctx context.Context, log *os.File, args []string) error {
	bounded, cancel := context.WithTimeout(ctx, suiteTimeout)
	defer cancel()
	cmd := exec.CommandContext(bounded, r.node, append([]string{r.program}, args...)...)
	cmd.Dir = r.fixtures
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(r.node)+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = log, log
	ownGroup(cmd)
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case bounded.Err() != nil:
		return fmt.Errorf("the suite did not end within %v: with -keep FOLDER, see suite.log in it", suiteTimeout)
	case err != nil && !errors.As(err, &exit):
		return fmt.Errorf("the suite could not be run: %w", err)
	}
	return nil
}

var errInterrupted = errors.New("interrupted")
