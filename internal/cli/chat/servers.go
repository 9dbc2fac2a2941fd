package chat

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// Programs are other commands of dowel that a conversation runs. Set all fields.
type Programs struct {
	Doctor, Login func(*factory.Factory) *cobra.Command
}

// Words after /servers.
const (
	restartWord = "restart"
	loginWord   = "login"
	whyWord     = "why"
)

var serverVerbs = []string{restartWord, loginWord, whyWord}

// handleServers lists the servers, or does something with one of them.
func (c *conversation) handleServers(ctx context.Context, words string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	servers, err := rt.Servers(ctx)
	if err != nil {
		return err
	}
	verb, name, _ := strings.Cut(words, " ")
	name = strings.TrimSpace(name)
	switch at := slices.IndexFunc(servers, func(s agentcmd.Server) bool { return s.Name == name }); {
	case words == "":
		c.writeServers(servers)
		return nil
	case !slices.Contains(serverVerbs, verb):
		return exit.Usagef("/servers %s: want %s%s", verb, strings.Join(serverVerbs, ", "), suggest.ForFlag(verb, serverVerbs))
	case at < 0:
		return exit.Usagef("/servers %s: no server is called %q%s", verb, name, suggest.Hint(name, serverNames(servers)))
	case verb == whyWord:
		c.writeServers(servers[at : at+1])
		return nil
	}
	if verb == loginWord {
		return c.runProgram(ctx, c.flags.programs.Login, []string{name})
	}
	if err := rt.Restart(ctx, name); err != nil {
		return err
	}
	c.view.Note("%s restarts; /servers shows its state", term.RevealLine(name))
	return nil
}

func (c *conversation) writeServers(servers []agentcmd.Server) {
	for _, text := range display.ServerTable(c.app, servers, c.app.Stdout.Width()) {
		fmt.Fprintln(c.app.Stdout, text)
	}
}

func serverNames(servers []agentcmd.Server) (names []string) {
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}

// examineServers runs dowel doctor for the named servers, or for all of the configuration.
func (c *conversation) examineServers(ctx context.Context, names string) error {
	return c.runProgram(ctx, c.flags.programs.Doctor, strings.Fields(names))
}

// runProgram runs another command of dowel with the places of the configuration. The command has
// no standard input, which belongs to the conversation.
func (c *conversation) runProgram(ctx context.Context, newCommand func(*factory.Factory) *cobra.Command, words []string) error {
	app := *c.app
	app.Stdin = strings.NewReader("")
	cmd := newCommand(&app)
	for _, file := range c.flags.Files {
		words = append(words, "--config", file)
	}
	if c.flags.Project != "" {
		words = append(words, "--project", c.flags.Project)
	}
	cmd.SetArgs(words)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}
