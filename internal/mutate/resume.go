package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/docs"
)

// resultLog keeps the changes of one commit that were noticed in a file, so that an interrupted run
// can continue. Results of another commit do not count: its code and tests may be others.
type resultLog struct {
	mu      sync.Mutex
	file    *os.File                 // guarded by mu
	noticed map[string]docs.TestName // by mutant.at; not changed after openResultLog
}

// openResultLog reads the file at path. It empties the file if the results belong to another
// commit.
func openResultLog(path, commit string) (*resultLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l := &resultLog{file: file, noticed: map[string]docs.TestName{}}
	head := "commit " + commit + "\n"
	results, isSame := strings.CutPrefix(string(text), head)
	if !isSame {
		if err := file.Truncate(0); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		_, err = file.WriteString(head)
		return l, err
	}
	for line := range strings.Lines(results) {
		at, test, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if tests := docs.FindTests(test); len(tests) == 1 {
			l.noticed[at] = tests[0]
		}
	}
	return l, nil
}

// findResult returns the result of an earlier run. A nil log never has a result.
func (l *resultLog) findResult(m mutant) (result, bool) {
	if l == nil {
		return result{}, false
	}
	by, ok := l.noticed[m.at]
	return result{mutant: m, verdict: caught, by: by}, ok
}

// addResult appends the result of a change that was noticed. A nil log ignores it.
func (l *resultLog) addResult(r result) error {
	if l == nil || r.verdict != caught {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.file, "%s `%s`\n", r.mutant.at, r.by)
	return err
}

// readCommit returns the commit of the working tree, or an error if a tracked file differs from it.
func readCommit(ctx context.Context) (string, error) {
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":/", ":(exclude)"+resultPage).Output()
	if err != nil {
		return "", fmt.Errorf("-resume and -write need a repository of git: %w", err)
	}
	if len(changes) > 0 {
		return "", fmt.Errorf("-resume and -write need the code of a commit, and these files differ:\n%s", changes)
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	return strings.TrimSpace(string(commit)), err
}
