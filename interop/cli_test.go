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

// runLimit is the longest that one run of dowel may take.
const runLimit = 60 * time.Second

// output is what a run of dowel left.
type output struct {
	words          []string
	stdout, stderr string
	code           int
	took           time.Duration // up to the end of the last process
}

// cli runs dowel on servers, each time in an empty home.
type cli struct {
	t    *testing.T
	mark string
	home string
}

func newCLI(t *testing.T) cli {
	return cli{t, newMark(t), t.TempDir()}
}

// command is dowel with words, and with a server behind them unless it is empty: its command, or its URL alone.
func (c cli) command(ctx context.Context, server []string, words ...string) *exec.Cmd {
	c.t.Helper()
	switch {
	case len(server) == 1 && strings.Contains(server[0], "://"):
		words = append(slices.Clone(words), "--url", server[0])
	case len(server) > 0:
		words = append(append(slices.Clone(words), "--"), withMark(c.mark, server...)...)
	}
	cmd := exec.CommandContext(ctx, built(c.t, "dowel"), words...)
	cmd.Dir = c.home
	cmd.Env = []string{c.mark, "HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "LANG=C.UTF-8"}
	cmd.WaitDelay = grace
	return cmd
}

// on runs dowel on a server given by its command or URL, and fails the test when a process is left behind.
func (c cli) on(server []string, words ...string) output {
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
		c.t.Fatalf("dowel %s: no end after %v\nstderr: %s", strings.Join(words, " "), runLimit, short(stderr.String()))
	}
	noneLeft(c.t, c.mark)
	return output{words, stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), time.Since(start)}
}

// ok runs dowel on a server and fails the test unless it ends well and stdout holds each of the wanted texts.
func (c cli) ok(server, words []string, want ...string) output {
	c.t.Helper()
	out := c.on(server, words...)
	if out.code != 0 {
		c.t.Errorf("%v: exit code %d\nstdout: %s\nstderr: %s", words, out.code, short(out.stdout), short(out.stderr))
	}
	for _, text := range want {
		if !strings.Contains(out.stdout, text) {
			c.t.Errorf("%v: %q is not in the output\nstdout: %s\nstderr: %s", words, text, short(out.stdout), short(out.stderr))
		}
	}
	return out
}

// fails runs dowel on a server and fails the test unless it ends badly and says each of the wanted texts.
func (c cli) fails(server, words []string, want ...string) {
	c.t.Helper()
	out := c.on(server, words...)
	if out.code == 0 {
		c.t.Errorf("%v: exit code 0, want a failure\nstdout: %s\nstderr: %s", words, short(out.stdout), short(out.stderr))
	}
	for _, text := range want {
		if !strings.Contains(out.stdout+out.stderr, text) {
			c.t.Errorf("%v: %q is not said\nstdout: %s\nstderr: %s", words, text, short(out.stdout), short(out.stderr))
		}
	}
}

// json runs dowel with --json on a server and returns the one value on its stdout.
func (c cli) json(server []string, words ...string) any {
	c.t.Helper()
	out := c.ok(server, append(words, "--json"))
	var value any
	if err := json.Unmarshal([]byte(out.stdout), &value); err != nil {
		c.t.Fatalf("%v: stdout is not one JSON value: %v\nstdout: %s", out.words, err, short(out.stdout))
	}
	return value
}

// under returns every value of a key anywhere in a JSON value.
func under(value any, key string) []any {
	var found []any
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if name == key {
				found = append(found, member)
			}
			found = append(found, under(member, key)...)
		}
	case []any:
		for _, member := range value {
			found = append(found, under(member, key)...)
		}
	}
	return found
}

// has fails the test unless a key has a value somewhere in a JSON value.
func has(t *testing.T, value any, key string, want any) {
	t.Helper()
	if !slices.Contains(scalars(under(value, key)), want) {
		text, _ := json.Marshal(value) // it was read from JSON
		t.Errorf("no %q: %v in %s", key, want, short(string(text)))
	}
}

// scalars leaves out what == cannot compare.
func scalars(values []any) []any {
	return slices.DeleteFunc(values, func(v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
		return false
	})
}

func short(text string) string {
	if len(text) > 2000 {
		return text[:1000] + " … " + text[len(text)-1000:]
	}
	return text
}

func words(line ...string) []string { return line }
