package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// listTools lists all tools, one on a line. With words it shows the tools that contain all of them,
// with their arguments.
func (c *conversation) listTools(ctx context.Context, words string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	tools, err := toolname.Recorder{Toolbox: rt.Toolbox}.List(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(tools, func(a, b mcp.Tool) int { return strings.Compare(a.Name, b.Name) })
	shown, costs := 0, measureTools(rt)
	for i := range tools {
		t := &tools[i]
		if !containsAll(toolname.Display(t.Name)+" "+t.Title+" "+t.Description, words) {
			continue
		}
		shown++
		if words == "" {
			c.writeToolLine(t, describeCost(rt, costs, t))
			continue
		}
		full := *t
		full.Name = toolname.Display(t.Name)
		display.WriteTool(c.app, &full, shown > 1)
	}
	switch {
	case shown == 0 && words != "":
		return exit.Usagef("none of %d tools contains %q", len(tools), words)
	case shown == 0:
		c.view.Note("no server offers a tool; /servers shows their state")
	case words == "":
		c.view.Note("%s; /tools WORDS shows matching tools with their arguments", display.Count(shown, "tool"))
	}
	return nil
}

// writeToolLine writes one line: "server.tool read-only 120 tokens description".
func (c *conversation) writeToolLine(t *mcp.Tool, cost string) {
	out, name := c.app.Stdout, toolname.Display(t.Name)
	effect := ""
	switch agent.EffectOf(t) {
	case agent.ReadOnly:
		effect = "read-only "
	case agent.Changes:
		effect = "changes "
	}
	if cost != "" {
		cost += " "
	}
	about := term.FirstLine(t.Description)
	if out.IsTerminal() {
		about = term.Shorten(about, max(out.Columns()-term.TextWidth(name+effect+cost)-2, 10))
	}
	fmt.Fprintf(out, "%s %s%s%s\n", out.Bold(name), out.Yellow(effect), out.Dim(cost), about)
}

// containsAll reports whether text contains every word, ignoring case.
func containsAll(text, words string) bool {
	text = strings.ToLower(text)
	for _, word := range strings.Fields(strings.ToLower(words)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func (c *conversation) listPrompts(ctx context.Context, words string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	prompts, err := rt.ListPrompts(ctx)
	if err != nil {
		return err
	}
	shown := 0
	for _, p := range prompts {
		if !containsAll(p.Name+" "+p.Title+" "+p.Description, words) {
			continue
		}
		shown++
		p.Name = "/" + toolname.Display(p.Name)
		display.WritePrompt(c.app, p)
	}
	if shown == 0 {
		c.view.Note("no prompt was found")
	}
	return nil
}

// listResources lists the resources and templates of all servers, one on a line. With words it
// shows the tools that contain all words.
func (c *conversation) listResources(ctx context.Context, words string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	resources, err := rt.ListResources(ctx)
	if err != nil {
		return err
	}
	out, shown := c.app.Stdout, 0
	for _, r := range resources {
		name := toolname.DisplayResource(r)
		if !containsAll(strings.Join([]string{name, r.Name, r.Title, r.Description}, " "), words) {
			continue
		}
		shown++
		kind := term.Line(r.MIMEType)
		if r.Template {
			kind = strings.TrimSpace("template " + kind)
		}
		about := term.Line(cmp.Or(r.Title, r.Name))
		if description := term.FirstLine(r.Description); description != "" {
			about += ": " + description
		}
		if out.IsTerminal() {
			about = term.Shorten(about, max(out.Columns()-term.TextWidth(name+kind)-4, 10))
		}
		fmt.Fprintf(out, "@%s %s %s\n", out.Bold(name), out.Dim(kind), about)
	}
	switch {
	case shown == 0 && words != "":
		return exit.Usagef("none of %s contains %q", display.Count(len(resources), "resource"), words)
	case shown == 0:
		c.view.Note("no server offers a resource; /servers shows their state")
	}
	return nil
}
