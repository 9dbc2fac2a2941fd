package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func discoverCommand(f *app) *cobra.Command {
	a := newConnection(f)
	return a.command(&cobra.Command{
		Use:   "discover SERVER",
		Short: "Show what a server is: name, revision, capabilities, instructions",
		Long: `Connect to a server and show what it says of itself, and which protocol revision is spoken with it.

With --json: revision, era (modern from 2026-07-28 on, else legacy), and result, which is what the server answered
to server/discover; for a legacy server it is made of its answer to initialize.

` + naming,
		Example: `  dowel discover everything
  dowel discover everything --revision 2025-06-18 --wire
  dowel discover everything --json | jq -r .revision
  dowel discover -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t target, rest []string) error { return a.discover(ctx, t, rest) })
}

func (a *connection) discover(ctx context.Context, t target, rest []string) error {
	if len(rest) > 0 {
		return usagef("%s is one word too many", rest[0])
	}
	return a.with(ctx, t, func(c *client.Client) error {
		raw, err := request(ctx, c, mcp.MethodDiscover, "", mcp.None{}, client.CallOptions{})
		if err != nil {
			return err
		}
		if a.json {
			return a.either(mcp.Encode(struct {
				Revision mcp.Revision    `json:"revision"`
				Era      string          `json:"era"`
				Result   json.RawMessage `json:"result"`
			}{c.Revision(), era(c.Revision()), raw}))
		}
		a.identity(c, t, raw)
		return nil
	})
}

func era(r mcp.Revision) string {
	if r.Modern() {
		return "modern"
	}
	return "legacy"
}

func (a *app) identity(c *client.Client, t target, raw json.RawMessage) {
	info := c.ServerInfo()
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.stdout, "%s %s\n", a.stdout.dim(fmt.Sprintf("%-13s", name)), value)
		}
	}
	title := line(info.Name)
	if info.Title != "" && info.Title != info.Name {
		title += " (" + line(info.Title) + ")"
	}
	field("name", a.stdout.bold(title))
	field("version", line(info.Version))
	field("description", line(info.Description))
	field("website", line(info.WebsiteURL))
	field("from", t.origin)
	field("revision", fmt.Sprintf("%s (%s)", c.Revision(), era(c.Revision())))
	field("speaks", strings.Join(stringsIn(rawjson.Lookup(raw, "supportedVersions")), ", "))
	field("capabilities", strings.Join(capabilities(rawjson.Lookup(raw, "capabilities")), ", "))
	if instructions := c.Instructions(); instructions != "" {
		fmt.Fprintf(a.stdout, "\n")
		a.text(instructions)
	}
}

func stringsIn(array []byte) (all []string) {
	for it := rawjson.Array(array); it.Next(); {
		text, _ := rawjson.String(it.Value)
		all = append(all, line(text))
	}
	return all
}

// capabilities names what is offered, with what is offered of it: "resources (subscribe)".
func capabilities(raw json.RawMessage) []string {
	found := map[string]string{}
	for it := rawjson.Object(raw); it.Next(); {
		var parts []string
		for part := rawjson.Object(it.Value); part.Next(); {
			if string(part.Value) != "false" {
				parts = append(parts, line(string(part.Key)))
			}
		}
		name := line(string(it.Key))
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
