package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

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

// fullLine is the length from which on a line of a paragraph is taken for broken because it is full.
// The next line then continues the sentence.
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
			for n < len(lines) && term.TextWidth(lines[n-1]) >= fullLine && isContinuation(lines[n-1], lines[n]) {
				line += " " + strings.TrimSpace(lines[n])
				n++
			}
		}
		lines = lines[n:]
		out.WriteString(wrapHelpLine(line, width) + "\n")
	}
	return out.String()
}

// isContinuation reports whether next may go on with the sentence of line: it has the same
// indentation, and neither is a line of a table.
func isContinuation(line, next string) bool {
	lineIndent, lineTable := measureIndent(line)
	nextIndent, nextTable := measureIndent(next)
	return next != "" && !lineTable && !nextTable && lineIndent == nextIndent
}

// wrapHelpLine breaks a line between words.
func wrapHelpLine(line string, width int) string {
	if term.TextWidth(line) <= width || isCommand(line) {
		return line
	}
	indent, isTable := measureIndent(line)
	columns := term.TextWidth(line[:indent])
	if isTable && columns > width/2 { // too little room beside the other columns
		first := len(line) - len(strings.TrimLeft(line, " "))
		indent, columns = first, first+len("    ")
	}
	wrapped := term.Wrap(strings.Fields(line[indent:]), width-columns)
	return line[:indent] + strings.Join(wrapped, "\n"+strings.Repeat(" ", columns))
}

// isCommand reports whether a line is a command to copy. Examples are indented, sentences are not.
func isCommand(line string) bool {
	return strings.HasPrefix(line, " ") && strings.HasPrefix(strings.TrimSpace(line), "dowel ")
}

// measureIndent returns the index in line at which its last column begins if it is a line of a table,
// else its first word.
func measureIndent(line string) (indent int, isTable bool) {
	indent = len(line) - len(strings.TrimLeft(line, " "))
	if at := strings.LastIndex(line[indent:], "  "); at >= 0 {
		return indent + at + len("  "), true
	}
	return indent, false
}
