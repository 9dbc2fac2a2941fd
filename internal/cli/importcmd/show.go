package importcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/importing"
	"github.com/dowel-mcp/dowel/internal/term"
)

// findingLine is the JSON output for a finding.
type findingLine struct {
	Server   string   `json:"server"`
	As       string   `json:"as,omitzero"` // the name in the user's file, if that is another one
	Tool     string   `json:"tool"`
	File     string   `json:"file"`
	Add      bool     `json:"add"`
	Why      string   `json:"why,omitzero"`
	Disabled bool     `json:"disabled,omitzero"`
	Notes    []string `json:"notes,omitzero"`
	Facts    []string `json:"facts"`
}

// showFindings shows the found servers, a line each, under the files in which they are. details
// adds the position and the facts of each server.
func showFindings(f *factory.Factory, all []importing.Finding, o config.Options, details bool) {
	if f.JSON {
		for _, found := range all {
			line := findingLine{Server: found.Name, Tool: found.Dialect, File: found.Path, Add: found.SkipReason == "", Why: found.SkipReason,
				Disabled: found.Disabled, Notes: found.DescribeRisks(), Facts: found.TrustFacts(config.Variables{}).Lines()}
			if found.NewName != found.Name {
				line.As = found.NewName
			}
			factory.WriteJSONLine(f.Stdout, line)
		}
		return
	}
	const maxName = 24
	width := 0
	for _, found := range all {
		width = max(width, min(term.TextWidth(term.Line(found.Name)), maxName))
	}
	for len(all) > 0 {
		first := all[0]
		n := slices.IndexFunc(all, func(found importing.Finding) bool { return found.Path != first.Path })
		if n < 0 {
			n = len(all)
		}
		showFile(f, all[:n], o, width, details)
		all = all[n:]
	}
}

// showFile shows the servers of one file. width is the width of their names.
func showFile(f *factory.Factory, all []importing.Finding, o config.Options, width int, details bool) {
	d, _ := config.LookupDialect(all[0].Dialect)
	fmt.Fprintf(f.Stdout, "%s: %s in %s\n", f.Stdout.Bold(cmp.Or(d.Title, all[0].Dialect)), display.Plural(len(all), "server"), shortPath(all[0].Path, o))
	for _, found := range all {
		name := term.Shorten(term.Line(found.Name), width)
		name += strings.Repeat(" ", width-term.TextWidth(name))
		room := f.Stdout.Width() - width - len("  + ") - len("  ")
		reason := term.Shorten(strings.ReplaceAll(term.Line(found.SkipReason), o.Variables().Home+"/", "~/"), room)
		switch {
		case !found.Valid():
			fmt.Fprintf(f.Stdout, "  %s %s  %s\n", f.Stdout.Yellow("!"), name, f.Stdout.Yellow(reason))
		case found.SkipReason != "":
			fmt.Fprintf(f.Stdout, "  %s %s  %s\n", f.Stdout.Dim("–"), name, f.Stdout.Dim(reason))
		default:
			notes, what := term.RevealLine(strings.Join(found.DescribeNotes(o), ", ")), term.RevealLine(found.DescribeTarget())
			if notes != "" {
				notes += " · "
			}
			what = term.Shorten(what, max(room-term.TextWidth(notes), 0))
			fmt.Fprintf(f.Stdout, "  %s %s  %s%s\n", f.Stdout.Green("+"), f.Stdout.Bold(name), f.Stdout.Yellow(notes), what)
		}
		if details {
			showDetails(f, found)
		}
	}
}

// showDetails shows the position of a server, and everything that decides what it can do.
func showDetails(f *factory.Factory, found importing.Finding) {
	fmt.Fprintln(f.Stdout, "      "+f.Stdout.Dim(found.At.String()))
	for _, p := range found.Problems {
		fmt.Fprintln(f.Stdout, "      "+term.Line(p.Text()))
	}
	for _, fact := range found.TrustFacts(config.Variables{}).Lines() {
		fmt.Fprintln(f.Stdout, "      "+term.Line(consent.DescribeFact(fact)))
	}
}

// showSummary shows how many servers would be added, and how many would not.
func showSummary(f *factory.Factory, all []importing.Finding, details bool) {
	added, disabled := 0, 0
	for _, found := range all {
		if found.SkipReason == "" {
			added++
			if found.Disabled {
				disabled++
			}
		}
	}
	text := display.Plural(added, "server") + " to add"
	if added == 0 {
		text = "No servers to add"
	}
	if disabled > 0 {
		text += fmt.Sprintf(", %d of them disabled", disabled)
	}
	if skipped := len(all) - added; skipped > 0 {
		text += fmt.Sprintf("; %d left out", skipped)
	}
	if !details {
		text += "; more about each: dowel import --dry-run --details"
	}
	f.WriteMessage("%s", text)
}

// showPlaces tells where import looked for servers.
func showPlaces(f *factory.Factory, o config.Options, from []string) {
	fmt.Fprintln(f.Stdout, "Found no servers of other tools. dowel looked at:")
	width := 0
	for _, d := range config.Dialects() {
		width = max(width, len(d.Title))
	}
	for _, d := range config.Dialects() {
		if len(from) > 0 && !slices.Contains(from, d.Name) || d.Name == config.Own {
			continue
		}
		var paths []string
		for _, place := range d.Places(o) {
			paths = append(paths, shortPath(place.Path, o))
		}
		fmt.Fprintln(f.Stdout, term.Shorten(fmt.Sprintf("  %-*s  %s", width, d.Title, strings.Join(paths, ", ")), f.Stdout.Width()))
	}
	f.WriteMessage("Add a server yourself: dowel add NAME -- COMMAND…, or try the built-in ones: dowel up")
}

// showNeeds shows the problems that keep added servers from starting, equal ones once.
func showNeeds(f *factory.Factory, added []importing.Finding, o config.Options) {
	if f.JSON {
		return
	}
	set := config.Load(o)
	servers := map[string][]string{}
	var needs []string
	for _, found := range added {
		s := set.Server(found.NewName)
		if s == nil || s.Disabled {
			continue
		}
		_, problems := s.Resolve(set.Variables)
		for _, p := range problems {
			need := p.Message
			if _, message, ok := strings.Cut(need, ": "); ok && p.Variable != "" {
				need = message // without the field
			}
			if p.Hint != "" {
				need += ": " + p.Hint
			}
			if servers[need] == nil {
				needs = append(needs, need)
			}
			if !slices.Contains(servers[need], s.Name) {
				servers[need] = append(servers[need], s.Name)
			}
		}
	}
	for _, need := range needs {
		f.WriteMessage("%s", term.Line(strings.Join(servers[need], ", ")+" waits: "+need))
	}
}

// shortPath writes ~ for the home folder and a path relative to the project's folder.
func shortPath(path string, o config.Options) string {
	if rest, ok := strings.CutPrefix(path, o.Project+"/"); ok && o.Project != "" {
		return rest
	}
	home := o.Variables().Home
	if rest, ok := strings.CutPrefix(path, home); ok && home != "" && strings.HasPrefix(strings.ReplaceAll(rest, `\`, "/"), "/") {
		return "~" + rest
	}
	return path
}
