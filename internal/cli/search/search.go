// Package search is dowel search: it finds servers in an MCP registry.
package search

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/published"
	"github.com/dowel-mcp/dowel/internal/install/registry"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// Options are the flags of dowel search.
type Options struct {
	registry string
	limit    int
}

// NewCommand returns the command dowel search.
func NewCommand(f *factory.Factory) *cobra.Command {
	var opts Options
	cmd := &cobra.Command{
		Use:   "search WORDS…",
		Short: "Find servers in the MCP registry",
		Long: `Find servers in the official MCP registry, or in another one with the same API. The registry finds servers with the first
word in their name; the other words must be in the name, the title or the description. The last column shows the sources from
which dowel can run a server. Everyone can publish in the registry: look at the owner in the name before you add a server.

dowel keeps answers for 10 minutes, and uses older ones if the registry cannot be reached.`,
		Example: `  dowel search weather
  dowel search github issues --limit 50 --json
  dowel add io.github.owner/weather`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, words []string) error {
			f.Parsed = true
			return runSearch(cmd.Context(), f, words, opts)
		},
	}
	published.AddRegistryFlag(cmd, &opts.registry)
	cmd.Flags().IntVar(&opts.limit, "limit", 20, "show at most `N` servers")
	return cmd
}

// listing is a server in the JSON output.
type listing struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Title       string   `json:"title,omitzero"`
	Description string   `json:"description"`
	Status      string   `json:"status,omitzero"`
	Sources     []string `json:"sources"` // from which dowel can run it
}

func runSearch(ctx context.Context, f *factory.Factory, words []string, opts Options) error {
	if opts.limit < 1 {
		return exit.Usagef("--limit %d: want at least 1", opts.limit)
	}
	found, more, err := published.Search(ctx, f, opts.registry, words, opts.limit)
	if err != nil {
		return err
	}
	all := []listing{}
	for _, e := range found {
		s := e.Server
		all = append(all, listing{s.Name, s.Version, s.Title, s.Description, e.Status, sources(e)})
	}
	if f.JSON {
		raw, err := json.Marshal(map[string]any{"servers": all, "more": more})
		return f.WriteDocumentOr(raw, err)
	}
	if len(all) == 0 {
		f.WriteNote("The registry %s has no server for %s. Try fewer or shorter words.", opts.registry, strings.Join(words, " "))
		return nil
	}
	writeListings(f, all)
	note := "Add one: dowel add " + all[0].Name
	if more {
		note = fmt.Sprintf("There may be more: --limit %d. %s", 2*opts.limit, note)
	}
	f.WriteNote("%s", note)
	return nil
}

// sources returns the ways to run a server that dowel knows, in the order of its document.
func sources(e registry.Entry) []string {
	ways := []string{}
	for _, w := range e.Ways() {
		if w.Unsupported == "" && !slices.Contains(ways, w.Way) {
			ways = append(ways, w.Way)
		}
	}
	return ways
}

// writeListings writes two lines for each server, since names and descriptions are long.
func writeListings(f *factory.Factory, all []listing) {
	out := f.Stdout
	for _, l := range all {
		from := "dowel cannot run it"
		if len(l.Sources) > 0 {
			from = strings.Join(l.Sources, ", ")
		}
		line := out.Bold(term.Line(l.Name)) + " " + term.Line(l.Version) + "  " + out.Dim(term.Line(from))
		if l.Status != "" && l.Status != "active" {
			line += "  " + out.Yellow(term.Line(l.Status))
		}
		fmt.Fprintln(out, line)
		fmt.Fprintln(out, "  "+term.Shorten(term.Line(l.Description), max(20, out.Width()-2)))
	}
}
