package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// shortenUsage leaves out the usage line of a group without a subcommand, although such a line
// works: it shows help. It changes the text that cobra writes. Setting a template of cobra would
// link text/template, and the linker then keeps each exported method of the program: 10 MB.
func shortenUsage(root *cobra.Command) {
	writeUsage := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		if !cmd.HasAvailableSubCommands() || !cmd.Runnable() {
			return writeUsage(cmd)
		}
		var usage bytes.Buffer
		out := cmd.OutOrStderr()
		cmd.SetOut(&usage)
		defer cmd.SetOut(out)
		if err := writeUsage(cmd); err != nil {
			return err
		}
		_, err := io.WriteString(out, strings.Replace(usage.String(), "\n  "+cmd.UseLine(), "", 1))
		return err
	})
}

// wrapHelp makes help on a terminal break its lines between words. Help that is written elsewhere
// keeps the lines that its author wrote.
func wrapHelp(root *cobra.Command, out *term.Screen) {
	showHelp := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, words []string) {
		if !out.IsTerminal() {
			showHelp(cmd, words)
			return
		}
		var help bytes.Buffer
		cmd.SetOut(&help)
		showHelp(cmd, words)
		cmd.SetOut(nil) // that is, of the root command
		if cmd == root {
			cmd.SetOut(out)
		}
		fmt.Fprint(out, wrapHelpText(help.String(), out.Columns()))
	})
}

// fullLine is the length from which on a line of a paragraph is taken for broken because it is
// full. The next line then continues the sentence.
const fullLine = 90

// wrapHelpText breaks the lines that are longer than width columns. Sentences of a paragraph flow
// from line to line. A line of a table continues under its last column, an indented line under its
// beginning. Commands stay whole, so that they can be copied.
func wrapHelpText(help string, width int) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimSuffix(help, "\n"), "\n")
	for len(lines) > 0 {
		line := lines[0]
		n := 1
		if term.TextWidth(line) > width {
			for n < len(lines) && isContinuation(line, lines[n-1], lines[n]) {
				line += " " + strings.TrimSpace(lines[n])
				n++
			}
		}
		lines = lines[n:]
		out.WriteString(term.WrapLine(line, width, 0) + "\n")
	}
	return out.String()
}

// isContinuation reports whether next continues the sentence of the line before it. In a paragraph,
// the line before is full, and both have the same indentation. In a table, next begins below the
// last column of first, the line of the table.
func isContinuation(first, before, next string) bool {
	firstIndent, firstTable := term.MeasureIndent(first)
	beforeIndent, beforeTable := term.MeasureIndent(before)
	nextIndent, nextTable := term.MeasureIndent(next)
	if next == "" || nextTable {
		return false
	}
	if firstTable {
		return nextIndent == firstIndent
	}
	return !beforeTable && beforeIndent == nextIndent && term.TextWidth(before) >= fullLine
}
