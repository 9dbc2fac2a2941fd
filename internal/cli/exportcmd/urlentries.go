package exportcmd

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/daemon"
)

// urlEntry is an entry of a tool's file that reaches dowel's gateway by its URL. Such an entry
// needs the gateway's token, which must not get into a file that a project shares.
type urlEntry struct {
	path, name string
	whole      bool // the URL leads to all servers, so that dowel up --stdio can take its place
}

// findURLEntries returns the entries of a tool's files for one of the gateway's addresses.
func findURLEntries(tool string, o config.Options, addresses []*url.URL) (entries []urlEntry) {
	for _, f := range config.Discover(o, tool) {
		if f.Section != "" {
			continue // dowel does not edit sections
		}
		for _, s := range f.Servers {
			if s.Kind == config.Stdio || s.URL == "" {
				continue
			}
			u, err := url.Parse(s.URL)
			if err != nil {
				continue
			}
			if slices.ContainsFunc(addresses, func(at *url.URL) bool { return connect.IsSameAddress(u, at) }) {
				path := strings.TrimSuffix(u.Path, "/")
				entries = append(entries, urlEntry{f.Path, s.Name, path == "/mcp" || path == "/sse" || path == "/ws"})
			}
		}
	}
	return entries
}

// gatewayAddresses returns the addresses of the gateway: the running one, or else the configured
// and the default one.
func gatewayAddresses(ctx context.Context, o config.Options) (addresses []*url.URL) {
	texts := []string{"http://" + daemon.DefaultAddress}
	ctx, cancel := context.WithTimeout(ctx, connect.StatusTimeout)
	defer cancel()
	if s, err := factory.RunningDaemon().Status(ctx); err == nil && s.Gateway != "" {
		texts = []string{s.Gateway}
	} else if settings, err := daemon.GatewaySettings(config.Load(o)); err == nil && settings.Address != "" {
		texts = append(texts, "http://"+daemon.LocalAddress(settings.Address))
	}
	for _, text := range texts {
		if u, err := url.Parse(text); err == nil {
			addresses = append(addresses, u)
		}
	}
	return addresses
}

// replaceURLEntries replaces entries by one that starts dowel over stdio, under their names. It
// returns the number of replaced entries in file.
func replaceURLEntries(f *factory.Factory, d config.Dialect, self, file string, entries []urlEntry, dry bool) (inFile int, err error) {
	for _, e := range entries {
		if !e.whole {
			continue
		}
		err := editing.EditFile(f, e.path, dry, true, func(text []byte, format edit.Format) ([]byte, error) {
			path := transfer.Path(d, e.name)
			text, err := edit.Remove(text, format, path) // its url and headers must not stay
			if err != nil {
				return nil, err
			}
			return edit.Set(text, format, path, transfer.Command(d, e.name, self, "up", "--stdio"))
		})
		if err != nil {
			return inFile, err
		}
		if e.path == file {
			inFile++
		}
	}
	return inFile, nil
}

// urlNotice returns the message about entries that reach the gateway by its URL, or "".
func urlNotice(tool string, entries []urlEntry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s in %s reaches dowel by its URL, and so needs the header that dowel status --token prints.\n", e.name, e.path)
		if e.whole {
			fmt.Fprintf(&b, "To replace it by an entry that starts dowel up --stdio and needs no token: dowel export --to %s --replace\n", tool)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
