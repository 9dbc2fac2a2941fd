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

// completionTimeout bounds asking a server for names during shell completion.
const completionTimeout = 3 * time.Second

// CompleteWords returns a completion function for SERVER and SERVER.THING. It completes THING with
// the items of the list l; member is the member of an item that holds its name. With a zero list it
// completes only servers.
func (conn *Connection) CompleteWords(l listing, member string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		server, _, dotted := strings.Cut(typed, ".")
		if conn.Found == nil {
			conn.Found = ReadDirectory(completionTimeout)
		}
		known := conn.Directory().Known()
		if l.method == "" || !dotted || !slices.Contains(known, server) {
			return known, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return conn.fetchNames(server, l, member), cobra.ShellCompDirectiveNoFileComp
	}
}

// fetchNames asks a server for the names of its items. It returns nil if the server fails or does
// not answer in time.
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
	}) // a completion cannot show an error
	return names
}

// CompleteNames is a completion function for the names of servers. It leaves out the given ones.
func CompleteNames(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := slices.DeleteFunc(ReadDirectory(completionTimeout).Known(), func(name string) bool { return slices.Contains(given, name) })
	return names, cobra.ShellCompDirectiveNoFileComp
}
