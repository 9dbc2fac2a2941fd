// Package published adds servers that other people publish: it finds them in the MCP registry, in
// server.json files, MCPB bundles and install links, shows what will run, and asks for values and
// consent.
package published

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/install"
	"github.com/dowel-mcp/dowel/internal/install/link"
	"github.com/dowel-mcp/dowel/internal/install/registry"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// Flags are the flags for published servers.
type Flags struct {
	as, way, registry string
	values            []string
	yes               bool
}

// Yes reports whether --yes is given.
func (p *Flags) Yes() bool { return p.yes }

// Add registers the flags.
func (p *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.as, "as", "", "call the server this `name` in your configuration")
	cmd.Flags().StringArrayVar(&p.values, "set", nil, "give a `NAME=VALUE` that the server needs (repeatable)")
	cmd.Flags().StringVar(&p.way, "from", "", "run it from this `source`: npm, pypi, oci, nuget, mcpb or remote")
	AddRegistryFlag(cmd, &p.registry)
	cmd.Flags().BoolVar(&p.yes, "yes", false, "add a published server without asking")
}

// registryVariable names the environment variable with the address of the registry.
const registryVariable = "DOWEL_REGISTRY"

// AddRegistryFlag adds the flag --registry.
func AddRegistryFlag(cmd *cobra.Command, into *string) {
	address := registry.Official
	if own := os.Getenv(registryVariable); own != "" {
		address = own
	}
	cmd.Flags().StringVar(into, "registry", address, "ask the MCP registry at this `URL`; "+registryVariable+" sets it for good")
}

// openRegistry returns the client of a registry. It warns if it uses an older answer.
func openRegistry(f *factory.Factory, base string) *registry.Client {
	c := &registry.Client{Base: strings.TrimSuffix(base, "/"), HTTP: install.NewHTTPClient(), Stale: func(age time.Duration, err error) {
		f.Warn("%v; this is its answer of %v ago", err, age.Round(time.Minute))
	}}
	if folder, err := os.UserCacheDir(); err == nil {
		c.Folder = filepath.Join(folder, "dowel", "registry")
	}
	return c
}

// Server is a published server, which the user has agreed to add.
type Server struct {
	Name  string
	Entry edit.Object
	Notes []string
	// Unpack unpacks the server's bundle. Call it before the entry is written. nil for a server
	// without a bundle.
	Unpack func() error

	temporary string       // a downloaded file, or ""
	secrets   *secretFiles // nil without secrets to store
}

// StoreSecrets stores the secrets that the user has typed. Call it before the entry is written. If
// the entry is not written, call [Server.RemoveSecrets].
func (s *Server) StoreSecrets() error {
	if s.secrets == nil {
		return nil
	}
	return s.secrets.write()
}

// RemoveSecrets removes what [Server.StoreSecrets] has stored.
func (s *Server) RemoveSecrets() error {
	if s.secrets == nil {
		return nil
	}
	return os.RemoveAll(s.secrets.folder)
}

// Close removes temporary files.
func (s *Server) Close() {
	if s.temporary != "" {
		_ = os.Remove(s.temporary)
	}
}

// Is reports whether the first word of dowel add stands for a published server: an install link, a
// bundle, a server.json file, or a name of the registry.
func Is(word string) bool {
	if link.Is(word) || isBundle(word) || strings.HasSuffix(word, ".json") {
		return true
	}
	name, _, _ := strings.Cut(word, "@")
	owner, last, ok := strings.Cut(name, "/")
	return ok && strings.Contains(owner, ".") && last != "" && !strings.HasPrefix(word, ".") && !strings.ContainsAny(word, `\ :`) && !strings.Contains(last, "/")
}

// Find returns the server that a word stands for, see [Is]. It asks the user on a terminal unless
// dry is set. Close the server.
func Find(ctx context.Context, f *factory.Factory, word string, flags Flags, dry bool) (*Server, error) {
	a := &addition{f: f, flags: flags, dry: dry, in: term.NewLines(f.Stdin)}
	switch {
	case link.Is(word):
		return a.addLink(ctx, word)
	case isBundle(word):
		return a.addBundleAt(ctx, word)
	}
	e, err := a.readEntry(ctx, word)
	if err != nil {
		return nil, err
	}
	way, err := a.chooseWay(e.Ways())
	if err != nil {
		return nil, err
	}
	if way.Package != nil && way.Package.Type == "mcpb" {
		return a.addPublishedBundle(ctx, way)
	}
	if p := way.Package; p != nil && p.SHA256 != "" {
		if err := registry.CheckNPM(ctx, install.NewHTTPClient(), *p); err != nil {
			return nil, err
		}
	}
	return a.addPlan(ctx, &way.Plan, nil)
}

// addition adds one published server.
type addition struct {
	f     *factory.Factory
	flags Flags
	dry   bool
	in    *term.Lines
}

// readEntry reads a server.json file, or asks the registry for NAME or NAME@VERSION.
func (a *addition) readEntry(ctx context.Context, word string) (registry.Entry, error) {
	if strings.HasSuffix(word, ".json") {
		text, err := os.ReadFile(word)
		if err != nil {
			return registry.Entry{}, exit.UsageError{Err: err}
		}
		e, err := registry.Parse(text)
		if err != nil {
			return e, exit.Usagef("%s: %w", word, err)
		}
		return e, nil
	}
	name, version, _ := strings.Cut(word, "@")
	e, err := openRegistry(a.f, a.flags.registry).Get(ctx, name, version)
	var unreachable *registry.UnreachableError
	switch {
	case errors.Is(err, registry.ErrUnknown) && version != "":
		return e, exit.Usagef("the registry %s has no server %s of version %s; without @%s, dowel takes the latest one", a.flags.registry, name, version, version)
	case errors.Is(err, registry.ErrUnknown):
		return e, exit.Usagef("the registry %s has no server %s; look for it: dowel search %s", a.flags.registry, name, name[strings.LastIndex(name, "/")+1:])
	case errors.As(err, &unreachable):
		err = fmt.Errorf("%w. With a server.json file: dowel add FILE.json; with its command: dowel add NAME -- COMMAND…", unreachable.Err)
		return e, exit.ConnectError{Server: "the registry " + unreachable.Base, Err: err}
	}
	return e, err
}

// Search is [registry.Client.Search] with the errors of the command line.
func Search(ctx context.Context, f *factory.Factory, base string, words []string, limit int) ([]registry.Entry, bool, error) {
	found, more, err := openRegistry(f, base).Search(ctx, words, limit)
	var unreachable *registry.UnreachableError
	if errors.As(err, &unreachable) {
		err = exit.ConnectError{Server: "the registry " + unreachable.Base, Err: unreachable.Err}
	}
	return found, more, err
}

// chooseWay returns the way of --from, or the first one that dowel can run. A way whose program is
// not installed comes last.
func (a *addition) chooseWay(ways []registry.Way) (*registry.Way, error) {
	var reasons []string
	var later *registry.Way
	for i := range ways {
		w := &ways[i]
		switch {
		case a.flags.way != "" && a.flags.way != w.Way:
			continue
		case w.Unsupported != "":
			reasons = append(reasons, w.Way+": "+w.Unsupported)
			continue
		}
		if missing := missingProgram(w); missing != "" && a.flags.way == "" {
			if later == nil {
				later = w
			}
			continue
		}
		return w, nil
	}
	if later != nil {
		return later, nil
	}
	if len(reasons) == 0 {
		var names []string
		for _, w := range ways {
			names = append(names, w.Way)
		}
		return nil, exit.Usagef("--from %s: the server is published as %s", a.flags.way, strings.Join(slices.Compact(names), ", "))
	}
	return nil, fmt.Errorf("dowel cannot run %s: %s", ways[0].Name, strings.Join(reasons, "; "))
}

// missingProgram returns the program that a way needs and this machine does not have, or "".
func missingProgram(w *registry.Way) string {
	if w.Package == nil || w.Build == nil {
		return ""
	}
	program := w.Build(install.Values{}).Command
	if _, err := exec.LookPath(program); err != nil {
		return program
	}
	return ""
}

// addPlan asks for the missing values, shows the entry, and asks for consent. from is the entry of
// another tool, or nil.
func (a *addition) addPlan(ctx context.Context, p *install.Plan, from *config.Server) (*Server, error) {
	if p.Unsupported != "" {
		return nil, fmt.Errorf("dowel cannot run %s: %s", p.Name, p.Unsupported)
	}
	given, err := parseValues(a.flags.values)
	if err != nil {
		return nil, err
	}
	values, missing, err := p.Fill(given)
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	if err := a.askValues(ctx, p, missing, values); err != nil {
		return nil, err
	}
	secrets, err := a.askSecrets(ctx, p, given, values)
	if err != nil {
		return nil, err
	}
	s := &config.Server{}
	if from != nil { // its file decides which texts are variables
		s = from
	}
	s.Spec = p.Build(values)
	if err := checkSpec(s); err != nil {
		return nil, err
	}
	entry := transfer.Entry(s, "")
	if p.Title != "" {
		entry = append(edit.Object{{Key: "title", Value: install.Escape(p.Title)}}, entry...)
	}
	n := &Server{Name: p.Name, Entry: entry, Notes: secretNotes(p, values, secrets), secrets: secrets}
	if a.flags.as != "" {
		n.Name = a.flags.as
	}
	a.show(p, values)
	sent := sentVariables(s, given)
	for _, name := range sent {
		a.warnOf("it sends the value of your variable " + name + " to " + hostOf(s.URL))
	}
	if len(sent) > 0 && a.flags.yes && !a.dry {
		return nil, exit.Usagef("%s would get the value of your variable %s: if you want that, give it with --set, or add the server on a terminal without --yes", hostOf(s.URL), sent[0])
	}
	return n, a.confirm(ctx, n.Name)
}

// confirm asks whether to add a server.
func (a *addition) confirm(ctx context.Context, name string) error {
	switch {
	case a.dry || a.flags.yes:
		return nil
	case term.Terminal(a.f.Stdin) == nil || a.f.JSON:
		return exit.Usagef("nothing was added: without a terminal, use --yes to add the server or --dry-run to see the change")
	}
	agreed, err := consent.Ask(ctx, a.f, a.in, fmt.Sprintf("Add it as %s?", config.QuoteWord(name)))
	if err == nil && !agreed {
		err = errors.New("nothing was added")
	}
	return err
}
