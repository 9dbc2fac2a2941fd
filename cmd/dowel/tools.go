package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func toolsCommand(f *app) *cobra.Command {
	a := newConnection(f)
	return a.command(&cobra.Command{
		ValidArgsFunction: a.completeWords(listTools, "name"),

		Annotations: map[string]string{takesAll: "yes"},

		Use:   "tools [SERVER[.TOOL]]",
		Short: "List a server's tools, or show one in full",
		Long: `List a server's tools: how each is called, what it does, and what the server says of its effects.
Arguments in brackets may be left out. With a tool's name, show all of that tool. Without a server, list those of all.

` + naming,
		Example: `  dowel tools everything
  dowel tools everything.echo
  dowel tools everything --json | jq -r '.tools[].name'
  dowel tools -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t target, rest []string) error { return a.tools(ctx, t, rest) })
}

func (a *connection) tools(ctx context.Context, t target, rest []string) error {
	if len(rest) > 1 {
		return usagef("one tool at a time: %s", strings.Join(rest, " "))
	}
	return a.with(ctx, t, func(c *client.Client) error {
		if len(rest) == 1 {
			return a.oneTool(ctx, c, rest[0])
		}
		page, err := listTools.all(ctx, c)
		err = a.whole(t, page, err)
		if err != nil || a.json {
			return a.either(page, err)
		}
		tools, err := decodeItems[mcp.Tool](c, listTools, page)
		for i := range tools {
			a.toolEntry(&tools[i], i > 0)
		}
		if err == nil && len(tools) == 0 {
			a.warn("%s offers no tools", c.ServerInfo().Name)
		}
		return err
	})
}

// either writes the document, unless there is none.
func (a *app) either(raw []byte, err error) error {
	if err != nil {
		return err
	}
	return a.document(raw)
}

func (a *app) toolEntry(t *mcp.Tool, gap bool) {
	out := a.stdout
	if gap && out.isTerminal() {
		fmt.Fprintln(out)
	}
	a.heading(line(t.Name), effects(t))
	const indent = "  "
	for _, l := range wrap(signature(newSpec(t.InputSchema)), out.columns()-len(indent)) {
		fmt.Fprintf(out, "%s%s\n", indent, out.cyan(l))
	}
	if about := firstLine(t.Description); about != "" {
		fmt.Fprintf(out, "%s%s\n", indent, a.fitted(about, len(indent)))
	}
}

// heading writes a name at the left and words about it at the right.
func (a *app) heading(name, words string) {
	out := a.stdout
	if words == "" {
		fmt.Fprintln(out, out.bold(name))
		return
	}
	gap := max(out.columns()-utf8.RuneCountInString(name)-utf8.RuneCountInString(words), 2)
	fmt.Fprintf(out, "%s%s%s\n", out.bold(name), strings.Repeat(" ", gap), out.yellow(words))
}

// fitted cuts a line to what is left of the terminal's width.
func (a *app) fitted(text string, used int) string {
	if !a.stdout.isTerminal() {
		return text
	}
	return shorten(text, a.stdout.columns()-used)
}

// effects are the words for what the server says of a tool's effects; nothing where it says nothing.
func effects(t *mcp.Tool) string {
	if t.Annotations == nil {
		return ""
	}
	var words []string
	add := func(hint *bool, yes, no string) {
		switch {
		case hint == nil:
		case *hint && yes != "":
			words = append(words, yes)
		case !*hint && no != "":
			words = append(words, no)
		}
	}
	readOnly := t.Annotations.ReadOnlyHint
	add(readOnly, "read-only", "")
	if readOnly == nil || !*readOnly { // the next two mean nothing for what changes nothing
		add(t.Annotations.DestructiveHint, "destructive", "additive")
		add(t.Annotations.IdempotentHint, "idempotent", "")
	}
	add(t.Annotations.OpenWorldHint, "open world", "")
	return strings.Join(words, ", ")
}

func (a *app) oneTool(ctx context.Context, c *client.Client, name string) error {
	t, raw, err := findTool(ctx, c, name)
	if err != nil || a.json {
		return a.either(raw, err)
	}
	out := a.stdout
	a.heading(line(t.Name), effects(&t))
	if t.Title != "" {
		fmt.Fprintln(out, line(t.Title))
	}
	a.text(t.Description)
	a.arguments(newSpec(t.InputSchema))
	if len(t.OutputSchema) > 0 {
		fmt.Fprintf(out, "\n%s\n", out.bold("returns"))
		a.arguments(newSpec(t.OutputSchema))
	}
	return nil
}

// arguments shows what a schema says of each property.
func (a *app) arguments(s spec) {
	for _, p := range s.properties() {
		about := p.kind()
		if p.required {
			about += ", required"
		}
		if fallback := p.fallback(); fallback != "" {
			about += ", default " + fallback
		}
		fmt.Fprintf(a.stdout, "\n  %s  %s\n", a.stdout.cyan(line(p.name)), a.stdout.dim(about))
		const indent = "    "
		for _, l := range wrap(strings.Fields(printable(p.text("description"))), a.stdout.columns()-len(indent)) {
			fmt.Fprintf(a.stdout, "%s%s\n", indent, l)
		}
	}
}

func findTool(ctx context.Context, c *client.Client, name string) (mcp.Tool, json.RawMessage, error) {
	return find(ctx, c, listTools, "tool", name, func(t *mcp.Tool) string { return t.Name })
}
