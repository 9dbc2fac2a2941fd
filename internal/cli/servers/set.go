package servers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/mcpremote"
	"github.com/spf13/cobra"
)

func setCommand(f *factory.Factory) *cobra.Command {
	var where factory.Places
	var o setOptions
	cmd := &cobra.Command{
		Use: "set NAME [--url URL]", Short: "Let an entry connect to a URL instead of starting a command", Args: cobra.ExactArgs(1),
		ValidArgsFunction: connect.CompleteNames,
		Long: `Replace the command in a server's entry by a URL. If the entry starts mcp-remote, the URL and the headers come from its command
line: dowel connects to the URL itself. The rest of the entry and of the file stays unchanged, and dowel keeps a copy of the
old file. A running dowel connects at once and shows the result.`,
		Example: `  dowel servers set linear --dry-run
  dowel servers set docs --url https://example.com/mcp -H 'Authorization: Bearer ${DOCS_TOKEN}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			return setServer(cmd.Context(), f, args[0], where, o)
		},
	}
	where.AddFlags(cmd)
	cmd.Flags().StringVar(&o.url, "url", "", "the `URL`, unless the entry starts mcp-remote")
	cmd.Flags().StringArrayVarP(&o.headers, "header", "H", nil, "send this header `Name: value` (repeatable)")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "show what would be written, and write nothing")
	return cmd
}

// setOptions are the flags of dowel servers set.
type setOptions struct {
	url     string
	headers []string
	dry     bool
}

func setServer(ctx context.Context, f *factory.Factory, name string, where factory.Places, o setOptions) error {
	places, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	s, err := findEntry(config.Load(places), name)
	if err != nil {
		return err
	}
	d, err := config.LookupDialect(s.Dialect)
	if err != nil {
		return err
	}
	if !slices.Equal(d.Key, []string{"mcpServers"}) {
		return exit.Usagef("%s has the format of %s, which dowel servers set cannot write", s.Path, d.Title)
	}
	remote, err := chooseRemote(s, o)
	if err != nil {
		return err
	}
	path := transfer.Path(d, name)
	change := func(text []byte, format edit.Format) ([]byte, error) {
		old, _, err := edit.Lookup(text, format, path)
		if err != nil {
			return nil, err
		}
		before, ok := old.(edit.Object)
		if !ok {
			return nil, fmt.Errorf("%s is no longer in the file", name)
		}
		return edit.Set(text, format, path, remoteEntry(before, d, remote))
	}
	if o.dry {
		return editing.PreviewEdit(f, s.Path, change)
	}
	result, err := editing.WriteEdit(s.Path, true, change)
	if err != nil {
		return err
	}
	if !f.JSON {
		editing.ShowWritten(f, s.Path, result)
	}
	return showAddition(ctx, f, name, Addition{File: s.Path, Changed: result.Changed, Outcome: Outcome{Did: "set"}})
}

// chooseRemote returns the server that the entry s must connect to.
func chooseRemote(s *config.Server, o setOptions) (mcpremote.Remote, error) {
	remote, found, err := mcpremote.Parse(s.Command, s.Args)
	found = found && s.Kind == config.Stdio
	switch {
	case found && err != nil && o.url == "":
		return remote, exit.Usagef("%s: %w; give the --url and what else it needs, or leave the entry as it is", s.At, err)
	case found && o.url == "":
		insertEnvironment(&remote, s.Env)
	case o.url == "":
		return remote, exit.Usagef("give the --url of %s: its entry does not start mcp-remote", s.Name)
	default:
		remote = mcpremote.Remote{URL: o.url, Headers: map[string]string{}}
	}
	scheme, rest, _ := strings.Cut(remote.URL, "://")
	if !slices.Contains([]string{"http", "https", "ws", "wss"}, scheme) || rest == "" {
		return remote, exit.Usagef("--url: %q is not a URL: want one that begins with https:// or http://", remote.URL)
	}
	for _, field := range o.headers {
		name, value, ok := strings.Cut(field, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return remote, exit.Usagef("--header: want Name: value, not %q", field)
		}
		remote.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return remote, nil
}

// environmentVariable matches a variable that mcp-remote takes from its environment.
var environmentVariable = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// insertEnvironment replaces the variables that the entry itself sets for mcp-remote. dowel expands
// the others.
func insertEnvironment(r *mcpremote.Remote, env map[string]string) {
	insert := func(text string) string {
		return environmentVariable().ReplaceAllStringFunc(text, func(found string) string {
			if value, ok := env[environmentVariable().FindStringSubmatch(found)[1]]; ok {
				return value
			}
			return found
		})
	}
	for name, value := range r.Headers {
		r.Headers[name] = insert(value)
	}
}

// processKeys are the keys of an entry that a URL replaces.
var processKeys = []string{
	"type", "transport", "transportType", "command", "cmd", "args", "env", "environment", "envs", "cwd", "envFile",
	"url", "serverUrl", "uri", "httpUrl", "headers", "headersHelper", "keepDetached", "installTimeout",
}

// remoteEntry returns the entry with a URL in place of a command. It keeps all other members.
func remoteEntry(before edit.Object, d config.Dialect, r mcpremote.Remote) edit.Object {
	var entry edit.Object
	for _, m := range before {
		if !slices.Contains(processKeys, m.Key) && (m.Key != "oauth" || r.Resource == "") {
			entry = append(entry, m)
		}
	}
	kind := r.Transport
	if kind == "" && d.Name != config.Own {
		kind = string(config.HTTP) // other readers of the file want a type
	}
	if kind != "" {
		entry = append(entry, edit.Member{Key: "type", Value: kind})
	}
	entry = append(entry, edit.Member{Key: "url", Value: r.URL})
	var headers edit.Object
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		headers = append(headers, edit.Member{Key: name, Value: r.Headers[name]})
	}
	if headers != nil {
		entry = append(entry, edit.Member{Key: "headers", Value: headers})
	}
	if r.Resource != "" {
		entry = append(entry, edit.Member{Key: "oauth", Value: edit.Object{{Key: "resource", Value: r.Resource}}})
	}
	return entry
}
