package stacktrace

import (
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

var (
	// errorLine matches a line that begins an error of any runtime.
	errorLine = lazyregexp.New(`(?:^|[\s\[(:.$])(?:[A-Za-z_$][\w$]*)?(?:Error|Exception|Rejection)\b(?: \[\w+\])?(?::|\]|$| \{$)|^(?:error|panic|fatal error): `)
	javaCause = lazyregexp.New(`^Caused by: (.*)$`)
	rubyError = lazyregexp.New(`^\S.*\.rb:\d+:in .*?: (.*) \(([A-Z]\w*(?:::\w+)*)\)$`)
	rustPanic = lazyregexp.New(`^thread '[^']*'(?: \(\d+\))? panicked at (?:'(.*)', )?\S+:\d+:\d+:?$`)
	goPanic   = lazyregexp.New(`^\s*((?:panic|fatal error): .*?)(?: \[recovered.*\])?$`)

	uncaught  = lazyregexp.New(`^(?:error: Uncaught (?:\(in (?:promise|worker)[^)]*\) )?|Exception in thread "[^"]*" |Unhandled exception\.? |\[)`)
	rejection = lazyregexp.New(`^\[?UnhandledPromiseRejection: .* with the reason "(.*?)"\.?\]?`)
)

// readHeader reads a line that announces an error by its form alone.
func (p *parser) readHeader(line string) bool {
	switch {
	case strings.HasPrefix(line, "Traceback (most recent call last):"):
		p.kept, p.open = append(p.kept, line), "python"
	case rubyError().MatchString(line):
		m := rubyError().FindStringSubmatch(line)
		p.kept, p.message, p.cause = append(p.kept, line), m[2]+": "+m[1], ""
	case rustPanic().MatchString(line):
		p.kept, p.open, p.message, p.cause = append(p.kept, line), "rust", "", ""
		if m := rustPanic().FindStringSubmatch(line); m[1] != "" {
			p.message, p.open = "panic: "+m[1], ""
		}
	case goPanic().MatchString(line):
		p.kept, p.inGo = append(p.kept, line), true
		p.setMessage(goPanic().FindStringSubmatch(line)[1:])
	case javaCause().MatchString(line) && p.message != "":
		p.kept, p.cause = append(p.kept, line), javaCause().FindStringSubmatch(line)[1]
	default:
		return false
	}
	p.next++
	p.inTrace = p.open == "" // the lines above belong to this error
	p.candidate, p.excerpted = len(p.kept), false
	return true
}

// continueMessage takes a line as the message, or a part of it, of a trace that tells its error
// last.
func (p *parser) continueMessage(line string) {
	switch {
	case p.open == "rust":
		p.message, p.open = "panic: "+strings.TrimSpace(line), ""
	case strings.HasPrefix(line, "The above exception was"), strings.HasPrefix(line, "During handling of the above"):
		p.open, p.kept = "", p.kept[:len(p.kept)-1]
	case p.open == "python":
		p.setMessage([]string{line})
		p.open, p.continued = "more", 0
	default:
		p.message += " " + strings.Join(strings.Fields(line), " ")
		if p.continued++; p.continued == maxContinuation {
			p.open = ""
		}
	}
}

// cleanMessage removes the words with which a runtime introduces an uncaught error.
func cleanMessage(text string) string {
	text = cutProcessTag(text)
	if m := rejection().FindStringSubmatch(text); m != nil {
		return "unhandled rejection: " + m[1]
	}
	bare := uncaught().ReplaceAllString(text, "")
	if strings.HasPrefix(text, "[") {
		bare = strings.TrimSuffix(bare, "]")
	}
	return bare
}

// cutProcessTag removes the number of the process from the beginning of a line, such as "[4711] ".
func cutProcessTag(text string) string {
	tag, rest, ok := strings.Cut(text, "] ")
	number, hasBracket := strings.CutPrefix(tag, "[")
	if !ok || !hasBracket || number == "" || strings.Trim(number, "0123456789") != "" {
		return text
	}
	return rest
}
