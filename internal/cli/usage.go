package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// explainUsage replaces the argument errors of every command in a tree. The new errors name missing
// words with an example, surplus words, and the command that was probably meant.
func explainUsage(c *cobra.Command) {
	if c.HasSubCommands() && !c.Runnable() {
		c.Args, c.DisableFlagsInUseLine = rejectUnknownCommand, true
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	} else if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, words []string) error { return explainArgs(cmd, words, check(cmd, words)) }
	}
	for _, sub := range c.Commands() {
		explainUsage(sub)
	}
}

// rejectUnknownCommand checks the arguments of a group of commands. The remaining words do not name
// a command of the group, so any word is an error.
func rejectUnknownCommand(cmd *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return exit.Usagef("unknown command %q%s", words[0], suggest.Hint(words[0], known))
}

// explainArgs returns a clearer error than err for words that the check of a command rejected. It
// derives it from the usage line of the command. It returns nil if err is nil.
func explainArgs(cmd *cobra.Command, words []string, err error) error {
	var usage exit.UsageError
	if err == nil || errors.As(err, &usage) {
		return err
	}
	least, most := parseUse(cmd.Use)
	switch {
	case len(words) < len(least):
		return exit.Usagef("%s is missing: write %s", strings.Join(least[len(words):], " "), formatUseExample(cmd))
	case most == 0:
		return exit.Usagef("%s takes flags only, and %q is not a flag", cmd.CommandPath(), words[0])
	case most > 0 && len(words) > most:
		return exit.Usagef("%q is too much: write %s", words[most], formatUseExample(cmd))
	}
	return err
}

// parseUse parses the usage line of a command: the required words, and the maximal number of words,
// or -1 without a limit.
func parseUse(use string) (least []string, most int) {
	for _, word := range strings.Fields(use)[1:] {
		if strings.HasPrefix(strings.TrimLeft(word, "[("), "-") { // flags and their values
			break
		}
		if !strings.HasPrefix(word, "[") {
			least = append(least, strings.TrimSuffix(word, "…"))
		}
		if strings.HasSuffix(strings.TrimSuffix(word, "]"), "…") {
			most = -1
		} else if most >= 0 {
			most++
		}
	}
	return least, most
}

// formatUseExample returns the usage line, with the first example of the command or of a parent, if
// there is one.
func formatUseExample(cmd *cobra.Command) string {
	for c := cmd; c != nil; c = c.Parent() {
		for example := range strings.Lines(c.Example) {
			if example = strings.TrimSpace(example); strings.HasPrefix(example, cmd.CommandPath()+" ") {
				return formatUse(cmd) + ", such as " + example
			}
		}
	}
	return formatUse(cmd)
}

// formatUse returns the usage line without "[flags]".
func formatUse(cmd *cobra.Command) string { return strings.TrimSuffix(cmd.UseLine(), " [flags]") }

// explainFlagError returns a clearer error than cobra's for a wrong flag.
func explainFlagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		return explainUnknownFlag(cmd, unknown)
	case errors.As(err, &empty):
		return exit.Usagef("--%s needs a value: %s", empty.GetFlag().Name, describeFlagValue(empty.GetFlag(), ""))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		if want := describeFlagValue(f, invalid.GetValue()); want != "" {
			return exit.Usagef("--%s %s: %s", f.Name, invalid.GetValue(), want)
		}
		return exit.Usagef("--%s %s: %w", f.Name, invalid.GetValue(), invalid.Unwrap())
	}
	return err
}

// serverPrograms are programs that start servers.
var serverPrograms = []string{"bunx", "deno", "docker", "go", "node", "npx", "pnpm", "podman", "python", "python3", "uv", "uvx"}

// explainUnknownFlag returns the error for an unknown flag. It detects two frequent mistakes: the
// command of a server without --, and an argument of a tool written as a flag.
func explainUnknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	name, written := err.GetSpecifiedName(), "--"+err.GetSpecifiedName()
	if short := err.GetSpecifiedShortnames(); short != "" {
		written = "-" + short
	}
	words := cmd.Flags().Args()
	own := 0 // words before the server's command
	if cmd.Name() == "add" {
		own = 1
	}
	switch {
	case cmd.Name() == "add" && len(words) == 1 && slices.Contains(serverPrograms, words[0]):
		return exit.Usagef("unknown flag %s: give the server a name, and its command after --, as in %s NAME -- %s %[1]s …", written, cmd.CommandPath(), words[0])
	case cmd.Name() != "run" && cmd.Flags().Lookup("url") != nil && len(words) > own && !isServerName(cmd, words[own]):
		right := slices.Concat([]string{cmd.CommandPath()}, words[:own], []string{"--"}, words[own:], []string{written, "…"})
		return exit.Usagef("unknown flag %s: put the server's command after --, as in %s", written, strings.Join(right, " "))
	case cmd.Name() == "call" || cmd.Name() == "prompt":
		return exit.Usagef("unknown flag %s; write arguments of tools and prompts without dashes: %s=…", written, name)
	case len(written) > 2 && written[1] == '-':
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		if near := suggest.Nearest(name, flags); near != "" {
			return exit.Usagef("unknown flag %s; did you mean --%s?", written, near)
		}
	}
	return exit.Usagef("unknown flag %s", written)
}

// isServerName reports whether a word names a server. Otherwise it may begin a server's command.
func isServerName(cmd *cobra.Command, word string) bool {
	if cmd.Name() == "add" {
		return false
	}
	_, _, err := connect.SplitName(word, new(connect.TargetFlags).Directory().Known())
	return err == nil
}

// describeFlagValue describes the values that a flag accepts. written is the wrong value, or "".
// The result is "" if it knows no better than the error of the parser.
func describeFlagValue(f *pflag.Flag, written string) string {
	switch f.Value.Type() {
	case "duration":
		if _, err := strconv.ParseFloat(written, 64); err == nil {
			return "a duration needs its unit; did you mean " + written + "s?"
		}
		return "write a duration such as 5s, 2m or 500ms"
	case "int", "uint", "int64":
		return "write a whole number"
	case "bool":
		return "write true or false"
	}
	if written != "" {
		return ""
	}
	name, _ := pflag.UnquoteUsage(f)
	return fmt.Sprintf("write --%s %s", f.Name, strings.ToUpper(name))
}

// checkHelpTopic checks the arguments of dowel help. Cobra would show the help of the root command
// for an unknown topic, without an error.
func checkHelpTopic(cmd *cobra.Command, words []string) error {
	at, rest, err := cmd.Root().Find(words)
	if err == nil && len(rest) == 0 || len(words) == 0 {
		return nil
	}
	if at == nil {
		at = cmd.Root()
	}
	unknown := words[len(words)-max(len(rest), 1):]
	if !at.HasSubCommands() {
		return exit.Usagef("%s has no topics such as %q", at.CommandPath(), unknown[0])
	}
	return exit.WithHelp(rejectUnknownCommand(at, unknown), at.CommandPath()+" --help")
}
