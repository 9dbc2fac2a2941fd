package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/config"
	"github.com/dowel-mcp/dowel/hub/configured"
	"github.com/spf13/cobra"
)

func (a *app) trustCommand() *cobra.Command {
	var where places
	var yes bool
	cmd := &cobra.Command{
		Use:   "trust [NAME…]",
		Short: "Allow servers that came with a project",
		Long: `Show the servers that the current folder's configuration files bring along, what each of them would run or reach, and ask
whether it may. They run as you, with all that you may do: a project that was cloned is somebody else's.

What you allow is what you have seen: the transport, the command and its arguments, the folder, the names of variables and
header fields, the URL. Where one of them changes you are asked again, and shown what has changed.`,
		Example: `  dowel trust
  dowel trust --json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			a.began = true
			return a.trust(cmd.Context(), where, names, yes)
		},
	}
	where.register(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "allow the named servers without asking")
	return cmd
}

func (a *app) trust(ctx context.Context, where places, names []string, yes bool) error {
	if yes && len(names) == 0 {
		return usagef("--yes is for servers that are named")
	}
	source, err := a.look(where)
	if err != nil {
		return err
	}
	waiting := source.Untrusted()
	for _, name := range names {
		if !slices.ContainsFunc(waiting, func(u configured.Untrusted) bool { return u.Name == name }) {
			return usagef("%s does not wait for your trust; %s", name, whoWaits(waiting))
		}
	}
	if a.json && !yes {
		return a.value(untrusted(waiting))
	}
	in := bufio.NewReader(a.stdin)
	for _, u := range waiting {
		if len(names) > 0 && !slices.Contains(names, u.Name) {
			continue
		}
		if err := a.trustOne(source, u, in, yes); err != nil {
			return err
		}
	}
	a.tell(ctx)
	if len(waiting) == 0 && !a.json {
		fmt.Fprintln(a.stdout, "No server waits for your trust.")
	}
	return nil
}

// whoWaits names those that wait.
func whoWaits(waiting []configured.Untrusted) string {
	var names []string
	for _, u := range waiting {
		names = append(names, u.Name)
	}
	if names == nil {
		return "none does"
	}
	return strings.Join(names, ", ") + " do"
}

// waitingServer is a server that waits, as a program reads it.
type waitingServer struct {
	Name   string   `json:"name"`
	File   string   `json:"file"`
	Facts  []string `json:"facts"`
	Before []string `json:"before,omitempty"`
}

func untrusted(waiting []configured.Untrusted) []waitingServer {
	all := []waitingServer{}
	for _, u := range waiting {
		all = append(all, waitingServer{u.Name, u.Server.Path, u.Facts, u.Before})
	}
	return all
}

func (a *app) trustOne(source *configured.Source, u configured.Untrusted, in *bufio.Reader, yes bool) error {
	fmt.Fprintf(a.stdout, "%s, of %s\n", a.stdout.bold(line(u.Name)), u.At)
	facts := u.Facts
	if u.Before != nil {
		facts = config.TrustChange(u.Before, u.Facts)
	}
	for _, fact := range facts {
		fmt.Fprintln(a.stdout, "  "+line(fact))
	}
	switch {
	case yes:
	case terminal(a.stdin) == nil:
		fmt.Fprintln(a.stdout, "  allow it on a terminal, or with --yes")
		return nil
	case !a.agrees(in, "Allow it to run as you?"):
		return nil
	}
	if err := source.Trust(u.Name, u.Facts); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, a.stdout.green("allowed"))
	return nil
}

// agrees asks the user. Only a yes is one.
func (a *app) agrees(in *bufio.Reader, question string) bool {
	fmt.Fprint(a.stdout, question+" [y/N] ")
	answer, _ := in.ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
