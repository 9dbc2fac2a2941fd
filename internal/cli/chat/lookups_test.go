package chat

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/mcp"
)

// A server that is slow to answer does not hold up Tab. Its answer is used when it comes.
func TestSlowLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var work sync.WaitGroup
		var arrived, asked atomic.Int32
		answer := make(chan string)
		l := &lookups{ctx: t.Context(), start: work.Go, arrived: func() { arrived.Add(1) }}
		find := func() string {
			began := time.Now()
			got := findAnswer(l, "key", func(context.Context) (string, error) {
				asked.Add(1)
				text := <-answer
				if text == "" {
					return "nothing", errors.New("no answer")
				}
				return text, nil
			})
			if took := time.Since(began); took > lookupPatience {
				t.Errorf("Tab took %v", took)
			}
			l.wantAnswers(got == "")
			return got
		}
		for range 3 {
			if got := find(); got != "" || asked.Load() != 1 {
				t.Fatalf("got %q after %d questions", got, asked.Load())
			}
		}
		answer <- "late"
		work.Wait()
		if got := find(); got != "late" || asked.Load() != 1 || arrived.Load() != 1 {
			t.Errorf("got %q after %d questions, and %d answers arrived", got, asked.Load(), arrived.Load())
		}
		time.Sleep(lookupLife)
		if got := find(); got != "late" || asked.Load() != 2 {
			t.Errorf("in place of a new answer: %q, after %d questions", got, asked.Load())
		}
		answer <- ""
		work.Wait()
		if got := find(); got != "" || arrived.Load() != 1 {
			t.Errorf("after an error: %q, and %d answers arrived", got, arrived.Load())
		}
	})
}

// completing returns a conversation with servers that have resources, and have completed id for
// "1".
func completing(t *testing.T, resources ...agent.Resource) *conversation {
	t.Helper()
	ready := make(chan struct{})
	close(ready)
	c := &conversation{runtimeReady: ready, runtime: &agentcmd.Runtime{}}
	now := time.Now() // stands still
	c.lookups = &lookups{ctx: t.Context(), start: func(func()) { t.Error("a server is asked") }, arrived: func() { t.Error("an answer arrived") }, entries: map[string]*lookup{
		"resources": {answer: resources, at: now},
		"variable\x00one\x00x://{id}/{part}\x00x://\x001":        {answer: []string{"1", "12", "other"}, at: now},
		"variable\x00one\x00x://{id}/{part}\x00x://12/\x00":      {answer: []string{"a b"}, at: now},
		"variable\x00one\x00x://{id}/{part}\x00x://12/\x00a":     {answer: []string(nil), at: now},
		"variable\x00one\x00x://{id}/{part}\x00x://\x00":         {answer: []string(nil), at: now},
		"variable\x00one\x00x://{id}/{part}\x00x://12/\x00a%20b": {answer: []string{"a b"}, at: now},
		"variable\x00one\x00x://{id}/{part}\x00x://\x00\u200b":   {answer: []string{"\u200b"}, at: now},
	}}
	return c
}

func resource(server, uri string, template bool) agent.Resource {
	return agent.Resource{Resource: mcp.Resource{URI: uri}, Server: server, Template: template}
}

func TestCompleteReference(t *testing.T) {
	t.Chdir(t.TempDir()) // no file completes anything
	synctest.Test(t, func(t *testing.T) {
		c := completing(t, resource("one", "note:a", false), resource("one", "note:b", false), resource("one", "x://{id}/{part}", true), resource("other", "z:1", false))
		for typed, want := range map[string]struct {
			line    string
			choices []string
		}{
			"see @":              {"see @o", []string{"@one:", "@other:"}},
			"@on":                {"@one:", []string{"@one:"}},
			"@one:":              {"@one:", []string{"note:a", "note:b", "x://{id}/{part}"}},
			"@one:n":             {"@one:note:", []string{"note:a", "note:b"}},
			"@one:note:a":        {"@one:note:a ", []string{"note:a"}},
			"@one:x":             {"@one:x://", []string{"x://{id}/{part}"}},
			"@one:x://":          {"@one:x://", []string{"x://{id}/{part}"}},
			"@one:x://1":         {"@one:x://1", []string{"x://1/", "x://12/"}},
			"@one:x://12/":       {"@one:x://12/a%20b ", []string{"x://12/a%20b"}},
			"@one:x://12/a%20b":  {"@one:x://12/a%20b ", []string{"x://12/a%20b"}},
			"@two:":              {"@two:", nil},
			"mail a@one:n":       {"mail a@one:n", nil},
			"@one:y":             {"@one:y", nil},
			"/approve @one:note": {"/approve @one:note:", []string{"note:a", "note:b"}},
		} {
			line, at, choices := c.completeInput(typed, len(typed))
			if line != want.line || at != len(line) || !slices.Equal(choices, want.choices) {
				t.Errorf("%q: got %q, %d, %q, want %q, %q", typed, line, at, choices, want.line, want.choices)
			}
		}
	})
}

// Names of servers and resources reach neither the line nor the list of choices if a terminal would
// obey or hide a part of them.
func TestCompleteHostileResources(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		c := completing(t, resource("one", "note:\x1b[2J", false), resource("one", "note:a b", false), resource("one", "note:\u200ba", false), resource("one", "note:\u202ea", false),
			resource("e\x1b]0;owned\x07", "y:1", false), resource("one", "x://{id}/{part}", true), resource("one", "w\n://{id}", true))
		for typed, want := range map[string][]string{"@": {"@one:"}, "@one:": {"x://{id}/{part}"}, "@one:note": nil, "@one:x://\u200b": nil} {
			if _, _, choices := c.completeInput(typed, len(typed)); !slices.Equal(choices, want) {
				t.Errorf("%q: got %q, want %q", typed, choices, want)
			}
		}
	})
}
