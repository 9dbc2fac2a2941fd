package config

import (
	"fmt"
	"strings"
)

// envLine is one variable of an env file.
type envLine struct {
	name, value string
	at          Position
}

// parseEnvFile reads lines of KEY=VALUE: with export before them or not, quoted or not, with comments. Of a value in double quotes
// \n, \t, \r, \" and \\ are escapes, and it may go on over lines; one in single quotes is as it is. Variables are not expanded.
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
			problems = append(problems, Problem{Severity: Warning, Position: at, Message: "the line is left out: it is not KEY=VALUE", Hint: "write KEY=VALUE, or # before a comment"})
			continue
		}
		value, why := unquote(strings.TrimSpace(value))
		if why != "" {
			problems = append(problems, Problem{Severity: Error, Position: at, Message: fmt.Sprintf("the value of %s %s", name, why), Hint: "close the quote"})
			continue
		}
		lines = append(lines, envLine{name, value, at})
	}
	return lines, problems
}

// cutStatement cuts the first line off, and the lines after it that a quoted value goes on over.
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

// endOfQuote returns where the quote that the text begins with is closed, or -1.
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

var escapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\\`, `\`, `\$`, `$`)

// unquote returns the value, or what is wrong with it.
func unquote(text string) (value, why string) {
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
		return "", "goes on behind its closing quote"
	}
	if value = text[1:end]; text[0] == '"' {
		value = escapes.Replace(value)
	}
	return value, ""
}
