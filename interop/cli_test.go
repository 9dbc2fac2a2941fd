package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// runLimit bounds one run of dowel.
const runLimit = 60 * time.Second

// output is the result of a run of dowel.
type output struct {
	words          []string
	stdout, stderr string
	code           int
	took           time.Duration // until the end of the last process
}

// cli runs dowel with servers, in a home folder that is empty at first.
type cli struct {
	t    *testing.T
	mark string
	home string
}

func newCLI(t *testing.T) cli {
	return cli{t, newMark(t), t.TempDir()}
}

// command returns dowel with the arguments words and a server: a command, or a URL alone. An empty
// server adds nothing.
func (c cli) command(ctx context.Context, server []string, words ...string) *exec.Cmd {
	c.t.Helper()
	switch {
	case len(server) == 1 && strings.Contains(server[0], "://"):
		words = append(slices.Clone(words), "--url", server[0])
	case len(server) > 0:
		words = append(append(slices.Clone(words), "--"), withMark(c.mark, server...)...)
	}
	cmd := exec.CommandContext(ctx, binaryPath(c.t, "dowel"), words...)
	cmd.Dir = c.home
	cmd.Env = []string{c.mark, "HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "LANG=C.UTF-8"}
	cmd.WaitDelay = grace
	return cmd
}

// runWith runs dowel with a server, given by its command or URL. It fails the test if a process
// outlives the run.
func (c cli) runWith(server []string, words ...string) output {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := c.command(ctx, server, words...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("dowel %s: %v\nstderr: %s", strings.Join(words, " "), err, stderr.String())
	}
	if ctx.Err() != nil {
		c.t.Fatalf("dowel %s: it did not end within %v\nstderr: %s", strings.Join(words, " "), runLimit, shorten(stderr.String()))
	}
	expectNoneLeft(c.t, c.mark)
	return output{words, stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), time.Since(start)}
}

// expectSuccess runs dowel with a server and fails the test unless it succeeds and stdout contains
// each text of want.
func (c cli) expectSuccess(server, words []string, want ...string) output {
	c.t.Helper()
	out := c.runWith(server, words...)
	if out.code != 0 {
		c.t.Errorf("%v: exit code %d\nstdout: %s\nstderr: %s", words, out.code, shorten(out.stdout), shorten(out.stderr))
	}
	for _, text := range want {
		if !strings.Contains(out.stdout, text) {
			c.t.Errorf("%v: %q is not in the output\nstdout: %s\nstderr: %s", words, text, shorten(out.stdout), shorten(out.stderr))
		}
	}
	return out
}

// expectFailure runs dowel with a server and fails the test unless dowel fails and its output
// contains each text of want.
func (c cli) expectFailure(server, words []string, want ...string) {
	c.t.Helper()
	out := c.runWith(server, words...)
	if out.code == 0 {
		c.t.Errorf("%v: exit code 0, want a failure\nstdout: %s\nstderr: %s", words, shorten(out.stdout), shorten(out.stderr))
	}
	for _, text := range want {
		if !strings.Contains(out.stdout+out.stderr, text) {
			c.t.Errorf("%v: %q is not in the output\nstdout: %s\nstderr: %s", words, text, shorten(out.stdout), shorten(out.stderr))
		}
	}
}

// runJSON runs dowel with a server and --json, and returns the JSON value on its stdout.
func (c cli) runJSON(server []string, words ...string) any {
	c.t.Helper()
	out := c.expectSuccess(server, append(words, "--json"))
	var value any
	if err := json.Unmarshal([]byte(out.stdout), &value); err != nil {
		c.t.Fatalf("%v: stdout is not one JSON value: %v\nstdout: %s", out.words, err, shorten(out.stdout))
	}
	return value
}

// memberValues returns the values of all members with this key, at any depth of a JSON value.
func memberValues(value any, key string) []any {
	var found []any
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if name == key {
				found = append(found, member)
			}
			found = append(found, memberValues(member, key)...)
		}
	case []any:
		for _, member := range value {
			found = append(found, memberValues(member, key)...)
		}
	}
	return found
}

// expectMember fails the test unless some member of a JSON value, at any depth, has this key and
// value.
func expectMember(t *testing.T, value any, key string, want any) {
	t.Helper()
	if !slices.Contains(scalars(memberValues(value, key)), want) {
		text, _ := json.Marshal(value) // it was read from JSON
		t.Errorf("no %q: %v in %s", key, want, shorten(string(text)))
	}
}

// scalars returns the values that == can compare.
func scalars(values []any) []any {
	return slices.DeleteFunc(values, func(v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
		return false
	})
}

func shorten(text string) string {
	if len(text) > 2000 {
		return text[:1000] + " … " + text[len(text)-1000:]
	}
	return text
}

func words(line ...string) []string { return line }
