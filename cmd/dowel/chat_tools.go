package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// listTools shows the tools that there are, a line each; those that hold all of the words with their arguments.
func (c *chat) listTools(ctx context.Context, words string) error {
	it, err := c.assembled(ctx)
	if err != nil {
		return err
	}
	tools, err := memorizing{it.toolbox}.List(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(tools, func(a, b mcp.Tool) int { return strings.Compare(a.Name, b.Name) })
	shown := 0
	for i := range tools {
		t := &tools[i]
		if !holdsAll(spoken(t.Name)+" "+t.Title+" "+t.Description, words) {
			continue
		}
		shown++
		if words == "" {
			c.toolLine(t)
			continue
		}
		full := *t
		full.Name = spoken(t.Name)
		c.app.toolEntry(&full, shown > 1)
	}
	switch {
	case shown == 0 && words != "":
		return usagef("no tool of %d holds %q", len(tools), words)
	case shown == 0:
		c.show.note("no server offers a tool; /servers says how they are")
	case words == "":
		c.show.note("%s; /tools WORDS shows those that hold the words, with their arguments", counted(shown, "tool"))
	}
	return nil
}

// toolLine is "server.tool  read-only  what it does".
func (c *chat) toolLine(t *mcp.Tool) {
	out, name := c.app.stdout, spoken(t.Name)
	effect := ""
	switch agent.EffectOf(t) {
	case agent.ReadOnly:
		effect = "read-only "
	case agent.Changes:
		effect = "changes "
	}
	about := firstLine(t.Description)
	if out.isTerminal() {
		about = shorten(about, max(out.columns()-utf8.RuneCountInString(name+effect)-2, 10))
	}
	fmt.Fprintf(out, "%s %s%s\n", out.bold(name), out.yellow(effect), about)
}

// holdsAll reports whether a text holds every one of the words, in any case.
func holdsAll(text, words string) bool {
	text = strings.ToLower(text)
	for _, word := range strings.Fields(strings.ToLower(words)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func (c *chat) listServers(ctx context.Context, _ string) error {
	it, err := c.assembled(ctx)
	if err != nil {
		return err
	}
	servers, err := it.servers(ctx)
	if err != nil {
		return err
	}
	for _, text := range c.app.table(servers, c.app.stdout.width()) {
		fmt.Fprintln(c.app.stdout, text)
	}
	return nil
}

func (c *chat) listPrompts(ctx context.Context, words string) error {
	it, err := c.assembled(ctx)
	if err != nil {
		return err
	}
	prompts, err := it.listPrompts(ctx)
	if err != nil {
		return err
	}
	shown := 0
	for _, p := range prompts {
		if !holdsAll(p.Name+" "+p.Title+" "+p.Description, words) {
			continue
		}
		shown++
		p.Name = "/" + spoken(p.Name)
		c.app.promptEntry(p)
	}
	if shown == 0 {
		c.show.note("there is no such prompt")
	}
	return nil
}
