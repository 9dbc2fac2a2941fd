package stacktrace

import (
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

var (
	// atFrame matches the frames of JavaScript, Java and .NET.
	atFrame = lazyregexp.New(`^\s+at \S.*(?::\d+\)?|\([^()]*\)|<anonymous>\)?|:line \d+|\[[^\]]*\])(?: \{|,)?$`)
	// moreFrames matches the places of omitted frames.
	moreFrames = lazyregexp.New(`^\s+\.\.\. \d+ (?:more|lines matching .*|common frames omitted)$|^\s+\[Previous line repeated .*\]$`)
	rubyFrame  = lazyregexp.New(`^\s+from \S.*:\d+(?::in .*)?$`)
	pythonFile = lazyregexp.New(`^(\s*)File ".*", line \d+(?:, in .*)?$`)
	goPlace    = lazyregexp.New(`^\t\S.*\.(?:go|s):\d+(?: \+0x[0-9a-f]+)?$`)
	goNoise    = lazyregexp.New(`^goroutine \d+ .*\[.*\]:$|^\[signal SIG.*\]$|^exit status \d+$|^runtime stack:$`)
	rustNote   = lazyregexp.New(`^note: (?:run with|some details are omitted)|^stack backtrace:$|^\s+\d+: \S+.*::`)

	openBrace = lazyregexp.New(`[^{]\s\{$`)
	jsCause   = lazyregexp.New(`^\s+\[cause\]: (.*)$`)
	jsNested  = lazyregexp.New(`^\s+\[?((?:[A-Za-z_$][\w$]*)?Error(?: \[\w+\])?: [^\]]*)\]?`)
)

// skipFrame skips a frame of a trace with its code.
func (p *parser) skipFrame(line string) bool {
	switch {
	case atFrame().MatchString(line):
		p.endMessage()
		p.next++
		if strings.HasSuffix(line, " {") {
			p.skipProperties()
		}
	case moreFrames().MatchString(line), rubyFrame().MatchString(line):
		p.endMessage()
		p.next++
	case pythonFile().MatchString(line):
		p.skipPythonFrame(line)
	case p.inGo && (goNoise().MatchString(line) || strings.TrimSpace(line) == ""):
		p.next++
	case p.next+1 < len(p.lines) && goPlace().MatchString(p.lines[p.next+1]):
		p.next += 2
	case rustNote().MatchString(line):
		p.next, p.open = p.next+1, ""
	case p.excerpted && openBrace().MatchString(line) && errorLine().MatchString(line):
		p.kept = append(p.kept, strings.TrimSuffix(line, " {"))
		p.endMessage()
		p.next++
		p.skipProperties()
	default:
		return false
	}
	p.inTrace = true
	return true
}

// endMessage takes the lines in front of the first frame as the message.
func (p *parser) endMessage() {
	if !p.inTrace && p.open == "" {
		p.takeCandidate()
	}
	p.open = ""
}

// skipProperties skips the properties of a JavaScript error, up to the closing brace. It notes the
// error's cause.
func (p *parser) skipProperties() {
	for p.next < len(p.lines) {
		line := p.lines[p.next]
		p.next++
		if strings.TrimRight(line, ",") == "}" {
			return
		}
		if m := jsCause().FindStringSubmatch(line); m != nil {
			p.cause = strings.Trim(m[1], "[]{ ")
		} else if m := jsNested().FindStringSubmatch(line); m != nil && p.cause == "" {
			p.cause = m[1]
		}
	}
}

// skipPythonFrame skips the line of a file, and the code below it, which has a deeper indentation.
func (p *parser) skipPythonFrame(line string) {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	p.open = "python" // also without the head of a traceback, which a syntax error does not have
	p.next++
	for p.next < len(p.lines) {
		line := stripGroup(p.lines[p.next])
		if len(line)-len(strings.TrimLeft(line, " ")) <= indent {
			return
		}
		p.next++
	}
}
