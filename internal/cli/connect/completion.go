package connect

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/spf13/cobra"
)

// completionTimeout is how long a shell waits for names that a server has to be asked for.
const completionTimeout = 3 * time.Second

// CompleteWords offers a shell the names of servers and, behind one with a dot, of what it has; the member of each is the
// name that counts.
func (conn *Connection) CompleteWords(l listing, member string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		server, _, dotted := strings.Cut(typed, ".")
		known := conn.Directory().Known()
		if l.method == "" || !dotted || !slices.Contains(known, server) {
			return known, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return conn.fetchNames(server, l, member), cobra.ShellCompDirectiveNoFileComp
	}
}

// fetchNames asks a server; one that does not answer in time has no names.
func (conn *Connection) fetchNames(server string, l listing, member string) (names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	t, err := conn.ByName(server)
	if err != nil {
		return nil
	}
	_ = conn.DoWithOptions(ctx, t, client.Options{Restart: client.Restart{Max: -1}}, func(c *client.Client) error {
		page, err := l.All(ctx, c)
		for it := rawjson.Array(rawjson.Lookup(page, l.Member)); it.Next(); {
			name, _ := rawjson.String(rawjson.Lookup(it.Value, member))
			names = append(names, server+"."+name)
		}
		return err
	}) // a shell has no place for what went wrong
	return names
}

// CompleteNames completes the names of servers.
func CompleteNames(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := slices.DeleteFunc(ReadDirectory().Known(), func(name string) bool { return slices.Contains(given, name) })
	return names, cobra.ShellCompDirectiveNoFileComp
}
