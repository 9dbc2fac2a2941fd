package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

func TestWrapHelpText(t *testing.T) {
	const help = `A sentence that is so long that its author had to break it at the end of the line of the source,
goes on here. And ends.
Short.

  add         Add a server to your dowel.json: by its name
  … -- npx    by the command that starts it, after --
  dowel call everything.echo message=hello and=more
  an indented line that is too long for it
      --json   write JSON: one document, or a line
`
	const want = `A sentence that is so long that its
author had to break it at the end of the
line of the source, goes on here. And
ends.
Short.

  add         Add a server to your
              dowel.json: by its name
  … -- npx    by the command that starts
              it, after --
  dowel call everything.echo message=hello and=more
  an indented line that is too long for
  it
      --json   write JSON: one document,
               or a line
`
	if got := wrapHelpText(help, 40); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := wrapHelpText(help, 200); got != help {
		t.Errorf("lines that fit are changed:\n%s", got)
	}
}

// The help of each command fits a terminal of 80 columns, except for commands to copy and
// words that are longer.
func TestHelpFits(t *testing.T) {
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		var help bytes.Buffer
		cmd.SetOut(&help)
		if err := cmd.Help(); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(wrapHelpText(help.String(), 80)) {
			line = strings.TrimSuffix(line, "\n")
			if term.TextWidth(line) > 80 && strings.Contains(strings.TrimSpace(line), " ") && !strings.HasPrefix(line, "  dowel ") {
				t.Errorf("%s --help: %s", cmd.CommandPath(), line)
			}
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(CommandTree())
}

// A message names a command without a line break in it.
func TestCommandsStayWhole(t *testing.T) {
	for _, cmd := range CommandTree().Commands() {
		if cmd.IsAdditionalHelpTopicCommand() {
			continue
		}
		line := strings.Repeat("x", 30) + " dowel " + cmd.Name() + " a, and more"
		if got := term.WrapLine(line, 40, 2); !strings.Contains(got, "\n  dowel "+cmd.Name()+" a,") {
			t.Errorf("%q is broken: %q", line, got)
		}
	}
}
