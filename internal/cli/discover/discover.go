// Package discover is dowel discover: the identity, revisions and capabilities of a server.
package discover

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// NewCommand returns the command discover.
func NewCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	return conn.Command(&cobra.Command{
		Use:   "discover SERVER",
		Short: "Show a server's name, revision, capabilities and instructions",
		Long: `Connect to a server and show its description of itself, and the protocol revision of the connection.

With --json: revision, era (modern from 2026-07-28 on, else legacy), and result. The result is the server's answer to
server/discover, or for a legacy server the same information from its answer to initialize.

` + connect.NamingHelp,
		Example: `  dowel discover everything
  dowel discover everything --revision 2025-06-18 --wire
  dowel discover everything --json | jq -r .revision
  dowel discover -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t connect.Target, rest []string) error {
		return runDiscover(ctx, conn, t, rest)
	})
}

func runDiscover(ctx context.Context, conn *connect.Connection, t connect.Target, rest []string) error {
	if len(rest) > 0 {
		return exit.Usagef("%s is one word too many: write SERVER", rest[0])
	}
	return conn.Do(ctx, t, func(c *client.Client) error {
		raw, err := connect.Request(ctx, c, mcp.MethodDiscover, "", mcp.None{}, client.CallOptions{})
		if err != nil {
			return err
		}
		if conn.JSON {
			return conn.WriteDocumentOr(mcp.Encode(struct {
				Revision mcp.Revision    `json:"revision"`
				Era      string          `json:"era"`
				Result   json.RawMessage `json:"result"`
			}{c.Server().Revision, eraName(c.Server().Revision), raw}))
		}
		showIdentity(conn.Factory, c, t, raw)
		return nil
	})
}

// eraName returns the era of a revision.
func eraName(r mcp.Revision) string {
	if r.Modern() {
		return "modern"
	}
	return "legacy"
}

// showIdentity writes the identity of a server as text. raw is the result of server/discover.
func showIdentity(f *factory.Factory, c *client.Client, t connect.Target, raw json.RawMessage) {
	info := c.Server().Info
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintln(f.Stdout, term.WrapLine(f.Stdout.Dim(fmt.Sprintf("%-13s", name))+" "+value, f.Stdout.Width(), len("capabilities")+2))
		}
	}
	title := term.Line(info.Name)
	if info.Title != "" && info.Title != info.Name {
		title += " (" + term.Line(info.Title) + ")"
	}
	field("name", f.Stdout.Bold(title))
	field("version", term.Line(info.Version))
	field("description", term.Line(info.Description))
	field("website", term.Line(info.WebsiteURL))
	field("from", t.Origin)
	field("revision", fmt.Sprintf("%s (%s)", c.Server().Revision, eraName(c.Server().Revision)))
	field("speaks", strings.Join(decodeStrings(rawjson.Lookup(raw, "supportedVersions")), ", "))
	field("capabilities", strings.Join(formatCapabilities(rawjson.Lookup(raw, "capabilities")), ", "))
	if instructions := c.Server().Instructions; instructions != "" {
		fmt.Fprintf(f.Stdout, "\n")
		for line := range strings.SplitSeq(strings.TrimSuffix(f.Stdout.Clean(instructions), "\n"), "\n") {
			fmt.Fprintln(f.Stdout, term.WrapLine(line, f.Stdout.Width(), 0))
		}
	}
}

// decodeStrings decodes a JSON array of strings.
func decodeStrings(array []byte) (all []string) {
	for it := rawjson.Array(array); it.Next(); {
		text, _ := rawjson.String(it.Value)
		all = append(all, term.Line(text))
	}
	return all
}

// formatCapabilities returns each capability with its parts, such as "resources (subscribe)",
// sorted.
func formatCapabilities(raw json.RawMessage) []string {
	found := map[string]string{}
	for it := rawjson.Object(raw); it.Next(); {
		var parts []string
		for part := rawjson.Object(it.Value); part.Next(); {
			if string(part.Value) != "false" {
				parts = append(parts, term.Line(string(part.Key)))
			}
		}
		name := term.Line(string(it.Key))
		found[name] = name
		if len(parts) > 0 {
			found[name] += " (" + strings.Join(parts, ", ") + ")"
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[name])
	}
	return all
}
