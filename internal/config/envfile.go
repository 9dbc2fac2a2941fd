package config

import (
	"fmt"
	"strings"
)

// envLine is a variable of an env file.
type envLine struct {
	name, value string
	at          Position
}

// parseEnvFile parses lines of KEY=VALUE, with an optional export, optional quotes, and comments.
// In double quotes,
// , \t, \r, \" and \\ are escapes, and the value may span lines. A value in single quotes is taken
// literally. Variables are not expanded.
func parseEnvFile(path string, text string) ([]envLine, []Problem) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	var lines []envLine
	var problems []Problem
	for number := 1; text != ""; {
		statement, rest := cutStatement(text)
		at := Position{Path: path, Line: number, Column: 1}
		number += strings.Count(text[:len(text)-len(rest)], "\n")
		text = rest
		statement = strings.TrimSpace(statement)
		if statement == "" || statement[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(statement, "export "), "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t\x00\"'") {
			problems = append(problems, Problem{Severity: Warning, Position: at, Message: "the line is ignored: it is not KEY=VALUE", Hint: "write KEY=VALUE, or # before a comment"})
			continue
		}
		value, why := unquoteValue(strings.TrimSpace(value))
		if why != "" {
			problems = append(problems, Problem{Severity: Error, Position: at, Message: fmt.Sprintf("the value of %s %s", name, why), Hint: "close the quote"})
			continue
		}
		lines = append(lines, envLine{name, value, at})
	}
	return lines, problems
}

// cutStatement splits off the first statement: the first line, and the lines over which its quoted
// value extends.
func cutStatement(text string) (statement, rest string) {
	line, after, _ := strings.Cut(text, "\n")
	_, value, ok := strings.Cut(line, "=")
	value = strings.TrimSpace(value)
	if !ok || value == "" || strings.HasPrefix(strings.TrimSpace(line), "#") || value[0] != '"' && value[0] != '\'' || endOfQuote(value) >= 0 {
		return line, after
	}
	start := strings.Index(line, value)
	end := endOfQuote(text[start:])
	if end < 0 {
		return line, after
	}
	line, after, _ = strings.Cut(text[start+end:], "\n")
	return text[:start+end] + line, after
}

// endOfQuote returns the index of the quote that closes the one at the start of text, or -1.
func endOfQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && text[0] == '"':
			i++
		case text[i] == text[0]:
			return i
		}
	}
	return -1
}

var envEscapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\\`, `\`, `\$`, `$`)

// unquoteValue returns the value, or a description of its problem.
func unquoteValue(text string) (value, why string) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		if i := strings.Index(text, " #"); i >= 0 {
			text = strings.TrimSpace(text[:i])
		}
		if strings.HasPrefix(text, "#") {
			text = ""
		}
		return text, ""
	}
	end := endOfQuote(text)
	if end < 0 {
		return "", "begins with a quote that is not closed"
	}
	if rest := strings.TrimSpace(text[end+1:]); rest != "" && rest[0] != '#' {
		return "", "continues after its closing quote"
	}
	if value = text[1:end]; text[0] == '"' {
		value = envEscapes.Replace(value)
	}
	return value, ""
}
