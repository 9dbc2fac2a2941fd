package mcpwire

import "strings"

// AskerPrefix returns the words with which a gateway begins each question of an upstream. Every
// client shows the message of a question, and no upstream can send one without these words.
func AskerPrefix(server string) string { return "The server " + server + " asks: " }

// CleanQuestion replaces the characters of a message by which it could hide or move the words
// before it: control characters except new lines and tabs, and the controls of text direction.
func CleanQuestion(message string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r >= 0x7f && r <= 0x9f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e || r == 0x200f || r == 0x061c:
			return ' '
		}
		return r
	}, message)
}
