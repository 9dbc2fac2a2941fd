package term

import (
	"slices"
	"strings"
)

// Wrapped returns dowel's own text with its lines broken between words if the screen is a terminal,
// else unchanged. A line without indentation continues below its third column, so that the next
// message is told apart. Styles in text take no columns. See [WrapLine].
func (s *Screen) Wrapped(text string) string {
	if s.File == nil {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = WrapLine(line, s.Width(), len("  "))
	}
	return strings.Join(lines, "\n")
}

// WrapLine breaks a line that is longer than width columns between words. A line of a table
// continues below its last column, an indented line below its first word, and any other line below
// the given number of columns. Commands to copy and words such as addresses stay whole, also if
// they are longer than width.
func WrapLine(line string, width, hang int) string {
	if textColumns(line) <= width || isCommandLine(line) {
		return line
	}
	indent, isTable := MeasureIndent(line)
	columns := textColumns(line[:indent])
	words := joinCommands(strings.Fields(line[indent:]))
	if isTable && !fitsColumn(words, columns, width) {
		indent = len(line) - len(strings.TrimLeft(line, " "))
		words, columns = moveColumn(line, width), indent+movedColumn
	}
	if indent == 0 {
		columns = hang
	}
	wrapped := wrapFrom(words, width, textColumns(line[:indent]), columns)
	return line[:indent] + strings.Join(wrapped, "\n"+strings.Repeat(" ", columns))
}

// movedColumn is the indentation of a table's last column that has a line of its own.
const movedColumn = 4

// fitsColumn reports whether the last column of a table has room for its words beside the others.
func fitsColumn(words []string, columns, width int) bool {
	longest := longestWord(words)
	return columns <= width/2 && (columns+longest <= width || movedColumn+longest > width)
}

// moveColumn returns the words of a line of a table, without its indentation, so that its last
// column gets a line of its own.
func moveColumn(line string, width int) []string {
	indent, _ := MeasureIndent(line)
	first := len(line) - len(strings.TrimLeft(line, " "))
	before, last := line[first:indent-len(" ")], line[indent:]
	if first+textColumns(before) > width {
		return joinCommands(strings.Fields(line[first:]))
	}
	if first+movedColumn+textColumns(last) <= width {
		return []string{before, last}
	}
	return append([]string{before}, joinCommands(strings.Fields(last))...)
}

// isCommandLine reports whether a line is a command to copy. Examples are indented, sentences are
// not.
func isCommandLine(line string) bool {
	return strings.HasPrefix(line, " ") && strings.HasPrefix(strings.TrimSpace(line), "dowel ")
}

// MeasureIndent returns the index in line at which its last column begins if it is a line of a
// table, else its first word. A mark such as an arrow belongs to the indentation.
func MeasureIndent(line string) (indent int, isTable bool) {
	indent = len(line) - len(strings.TrimLeft(line, " "))
	if at := strings.LastIndex(line[indent:], "  "); at >= 0 {
		return indent + at + len("  "), true
	}
	if mark, _, ok := strings.Cut(line[indent:], " "); ok && indent > 0 && strings.Contains("→ ✓ ✗ ! – · | + -", escapeSequence().ReplaceAllString(mark, "")) {
		indent += len(mark) + len(" ")
	}
	return indent, false
}

// commandNames are the names of dowel's commands. In a sentence, another word after dowel belongs
// to no command.
var commandNames = []string{
	"add", "auth", "call", "chat", "complete", "completion", "config", "console", "discover", "doctor", "down", "export", "help", "import", "login", "logout", "models",
	"prompt", "prompts", "read", "resources", "restart", "run", "search", "serve", "servers", "service", "status", "task", "tools", "trust", "up", "version", "watch", "wire",
	"…",
}

// programs are other programs that messages call with flags.
var programs = []string{"curl", "docker", "journalctl", "launchctl", "npx", "ssh", "systemctl", "uvx"}

// joinCommands joins the words of each command in a sentence. A command ends with a sign of
// punctuation.
func joinCommands(words []string) (joined []string) {
	for len(words) > 0 {
		n := commandLength(words)
		joined = append(joined, strings.Join(words[:n], " "))
		words = words[n:]
	}
	return joined
}

// commandLength returns the number of words of the command that words begin with, or 1.
func commandLength(words []string) int {
	// shortCommand is the number of words that are taken for a command without flags.
	const shortCommand = 4
	if len(words) == 1 || !beginsCommand(words[0], words[1]) {
		return 1
	}
	n, rest := 1, false // rest: all that follows belongs to the command
	for isValue := false; n < len(words) && !endsClause(words[n-1]) && words[n][0] != '('; n++ {
		word := words[n]
		isFlag := len(word) > 1 && word[0] == '-'
		rest = rest || word == "--"
		isArgument := isFlag || isValue || strings.Contains(word, "=") || strings.ContainsAny(word[:1], "\"'$<[")
		if n >= shortCommand && !rest && !isArgument {
			break
		}
		isValue = isFlag
	}
	return n
}

// beginsCommand reports whether two words begin a command.
func beginsCommand(first, second string) bool {
	first = strings.TrimLeft(first, "\"'(")
	return first == "dowel" && slices.Contains(commandNames, strings.TrimRight(second, ",;:.)?!")) ||
		slices.Contains(programs, first) && second[0] == '-'
}

// endsClause reports whether a part of a sentence ends with word.
func endsClause(word string) bool {
	return strings.ContainsAny(word[len(word)-1:], ",;:.)?!")
}

func longestWord(words []string) (columns int) {
	for _, word := range words {
		columns = max(columns, textColumns(word))
	}
	return columns
}

// wrapFrom joins words to lines of at most width columns. The first line begins at the column
// first, the others at rest. A longer word gets its own line.
func wrapFrom(words []string, width, first, rest int) (lines []string) {
	current, at := "", first
	for _, word := range words {
		size := textColumns(word)
		switch {
		case current == "":
			current, at = word, at+size
		case at+1+size > width:
			lines = append(lines, strings.TrimRight(current, " "))
			current, at = word, rest+size
		default:
			current, at = current+" "+word, at+1+size
		}
	}
	return append(lines, current)
}

// textColumns returns the width of text without its styles.
func textColumns(text string) int { return TextWidth(escapeSequence().ReplaceAllString(text, "")) }
