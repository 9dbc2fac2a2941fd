package published

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/install"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
)

// hostOf returns the host of a URL for people.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return config.QuoteWord(address)
}

// show shows the source of a server and what will run.
func (a *addition) show(p *install.Plan, values install.Values) {
	if a.f.JSON {
		return
	}
	out := a.f.Stdout
	for i, line := range p.About {
		if i == 0 {
			line = out.Bold(term.RevealLine(line))
		} else {
			line = "  " + term.RevealLine(line)
		}
		a.f.WriteMessage("%s", line)
	}
	for _, warning := range p.Warnings {
		a.warnOf(warning)
	}
	shown := p.Build(hideSecrets(p, values)) // the source's own texts are no secrets of the user
	if shown.Command != "" {
		fmt.Fprintln(out, "  runs as you: "+strings.Join(config.QuoteWords(append([]string{shown.Command}, shown.Args...)), " "))
		if shown.Dir != "" {
			fmt.Fprintln(out, "  in the folder: "+config.QuoteWord(shown.Dir))
		}
	} else {
		fmt.Fprintln(out, "  connects to: "+config.QuoteWord(shown.URL))
	}
	for _, name := range slices.Sorted(maps.Keys(shown.Env)) {
		fmt.Fprintf(out, "  sets: %s=%s\n", config.QuoteWord(name), config.QuoteWord(shown.Env[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(shown.Headers)) {
		fmt.Fprintf(out, "  sends: %s: %s\n", config.QuoteWord(name), config.QuoteWord(shown.Headers[name]))
	}
	for _, in := range p.Inputs {
		if len(values[in.Name]) == 0 {
			fmt.Fprintf(out, "  %s\n", out.Dim(term.RevealLine("optional: --set "+in.Name+"=… ("+describeInput(in)+")")))
		}
	}
}

// warnOf shows a reason to think twice.
func (a *addition) warnOf(text string) {
	if !a.f.JSON {
		a.f.WriteMessage("  %s", a.f.Stdout.Yellow("Careful: "+term.RevealLine(text)))
	}
}

// hideSecrets returns the values with a mask in place of the secrets that the user has given.
func hideSecrets(p *install.Plan, values install.Values) install.Values {
	shown := maps.Clone(values)
	for _, in := range p.Inputs {
		value := values.Get(in.Name)
		isReference := value == "${"+in.Variable()+"}" || strings.HasPrefix(value, "${file:")
		if in.Secret && value != "" && !isReference {
			shown[in.Name] = []string{secretmask.Mask}
		}
	}
	return shown
}
