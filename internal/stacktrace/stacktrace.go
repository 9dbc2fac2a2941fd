// Package stacktrace finds the error in the stack trace that a crashed program has written to
// stderr. It knows the traces of Node.js, Deno, Bun, Python, Java, .NET, Go, Rust and Ruby.
package stacktrace

import (
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// Condense returns text without the frames of stack traces, the excerpts of source code in them
// and the version of the runtime. The lines of the error stay.
func Condense(text string) string {
	condensed, _ := Read(text)
	return condensed
}

// Message returns the error that ended a program: the last one in text that has a stack trace or
// the form of an uncaught error, on one line, with its cause. It returns "" if text holds no such
// error.
func Message(text string) string {
	_, message := Read(text)
	return message
}

// Read returns the results of [Condense] and [Message].
func Read(text string) (condensed, message string) {
	p := parse(text)
	message = p.message
	if message != "" && p.cause != "" && !strings.Contains(message, p.cause) {
		message += ", caused by " + p.cause
	}
	return strings.Join(p.kept, "\n"), message
}

// maxContinuation is the number of lines that a message may have after its first one.
const maxContinuation = 3

// parser walks over the lines of a text once.
type parser struct {
	lines []string
	next  int

	kept      []string
	candidate int    // index in kept of the first line that may belong to the next error
	excerpted bool   // an excerpt came directly before the candidate
	open      string // the trace whose message follows: python or rust; more if lines may continue it
	continued int    // lines that have continued the message since open became more
	inGo      bool   // a Go panic has been read
	inTrace   bool   // the last line was a frame

	message, cause string
}

func parse(text string) *parser {
	p := &parser{lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
	for p.next < len(p.lines) {
		line := stripGroup(p.lines[p.next])
		if p.skipExcerpt() || p.skipVersion(line) || p.skipFrame(line) || p.readHeader(line) {
			continue
		}
		p.next++
		p.keep(line)
	}
	return p
}

var (
	caret       = lazyregexp.New(`^\s*[~^]*\^[~^]*\s*$`)
	place       = lazyregexp.New(`^(?:/|file:|node:|[A-Za-z]:[\\/]).*:\d+$`)
	numbered    = lazyregexp.New(`^\s*\d+ \| `)
	groupPrefix = lazyregexp.New(`^\s+(?:\| )+ ?|^\s+\+ `)
	groupRule   = lazyregexp.New(`^\s+\+[-+]*(?: (\d+) )?-+$`)
	version     = lazyregexp.New(`^(?:Node\.js v\d+\.\d+\S*|Bun v\d+\.\d+.*\(.*\)|\(Use .node --trace-\S+ .*\))$`)
)

// stripGroup removes the frame of characters that Python draws around the errors of a group.
func stripGroup(line string) string {
	if strings.HasPrefix(line, "  + Exception Group Traceback") {
		return "Traceback (most recent call last):"
	}
	return groupPrefix().ReplaceAllString(line, "")
}

// skipExcerpt skips a piece of source code with a caret below it, and the place above it.
func (p *parser) skipExcerpt() bool {
	end := p.next
	if place().MatchString(p.lines[end]) {
		end++
	}
	const most = 10 // lines of code that Bun shows
	for end < min(len(p.lines), p.next+most) && numbered().MatchString(p.lines[end]) {
		end++
	}
	if end == p.next || end < len(p.lines) && !caret().MatchString(p.lines[end]) {
		end++ // the line of code
	}
	if end >= len(p.lines) || !caret().MatchString(p.lines[end]) {
		return false
	}
	if errorLine().MatchString(p.lines[p.next]) && end == p.next+1 {
		return false // an error with a caret below it
	}
	p.next, p.inTrace = end+1, false
	if p.open == "" {
		p.candidate, p.excerpted = len(p.kept), true
		if p.candidate > 0 && uncaught().MatchString(p.kept[p.candidate-1]) {
			p.candidate-- // Deno tells the error first
		}
	}
	return true
}

// skipVersion skips the version of the runtime, with which a trace of Node.js or Bun ends, and the
// lines that Python draws between the errors of a group.
func (p *parser) skipVersion(line string) bool {
	rule := groupRule().FindStringSubmatch(p.lines[p.next])
	if !version().MatchString(line) && rule == nil {
		return false
	}
	p.next++
	if rule != nil {
		p.open = ""
		if rule[1] != "" {
			p.open = "python" // an error of the group follows
		}
	}
	if p.excerpted {
		p.takeCandidate()
	}
	return true
}

// keep keeps a line that belongs to no trace.
func (p *parser) keep(line string) {
	if p.inTrace {
		p.inTrace, p.candidate, p.excerpted = false, len(p.kept), false
	}
	if strings.TrimSpace(line) == "" {
		return
	}
	p.kept = append(p.kept, line)
	if p.open != "" {
		p.continueMessage(line)
	}
}

// takeCandidate makes the kept lines in front of a trace the message.
func (p *parser) takeCandidate() {
	lines := p.kept[p.candidate:]
	p.candidate, p.excerpted = len(p.kept), false
	if len(lines) == 0 {
		return
	}
	start := max(0, len(lines)-1-maxContinuation)
	for i := len(lines) - 1; i >= start; i-- {
		if errorLine().MatchString(lines[i]) {
			p.setMessage(lines[i:])
			return
		}
	}
	p.setMessage(lines[len(lines)-1:])
}

// setMessage sets the message, without the words of the runtime in front of it.
func (p *parser) setMessage(lines []string) {
	text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	text = strings.TrimSuffix(strings.TrimPrefix(text, "Uncaught: "), " {")
	p.message, p.cause = cleanMessage(text), ""
}
