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

// explainUsage makes every command of a tree say in dowel's words why its words cannot be used: what is missing, with an example,
// what is too much, and which command was meant.
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

// rejectUnknownCommand is the check of a group of commands: what is left of the words is none of them.
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

// explainArgs says of words that a check does not let through what the command takes, as the line of its use has it.
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
		return exit.Usagef("%s takes flags only, and %q is none", cmd.CommandPath(), words[0])
	case most > 0 && len(words) > most:
		return exit.Usagef("%q is too much: write %s", words[most], formatUseExample(cmd))
	}
	return err
}

// parseUse reads the line of a command's use: the words that it needs, and how many it takes at most, -1 for any number.
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

// formatUseExample is a command line that works: the first example, also of the commands above, else the line of use.
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

func formatUse(cmd *cobra.Command) string { return strings.TrimSuffix(cmd.UseLine(), " [flags]") }

// explainFlagError says what is wrong with a flag.
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

// explainUnknownFlag helps those who write a server's command without --, and an argument of a tool as a flag.
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
	case cmd.Name() != "run" && cmd.Flags().Lookup("url") != nil && len(words) > own && !isServerName(cmd, words[own]):
		right := slices.Concat([]string{cmd.CommandPath()}, words[:own], []string{"--"}, words[own:], []string{written, "…"})
		return exit.Usagef("unknown flag %s: put the server's command behind --, as in %s", written, strings.Join(right, " "))
	case cmd.Name() == "call" || cmd.Name() == "prompt":
		return exit.Usagef("unknown flag %s; what a tool or prompt takes is written without dashes: %s=…", written, name)
	case len(written) > 2 && written[1] == '-':
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		if near := suggest.Nearest(name, flags); near != "" {
			return exit.Usagef("unknown flag %s; did you mean --%s?", written, near)
		}
	}
	return exit.Usagef("unknown flag %s", written)
}

// isServerName reports whether a word names a server, so that it is no command.
func isServerName(cmd *cobra.Command, word string) bool {
	if cmd.Name() == "add" {
		return false
	}
	_, _, err := connect.SplitName(word, new(connect.TargetFlags).Directory().Known())
	return err == nil
}

// describeFlagValue says what a flag takes, with regard to what was written; empty where that is not known.
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

// checkHelpTopic is the check of dowel help: cobra's own shows everything for what it does not know, and is content.
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
