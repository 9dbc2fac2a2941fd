package schema

import (
	"fmt"
	"slices"
	"strings"
)

// ValidationError says why a value does not match a schema, in words that a
// person or a model can act on.
type ValidationError struct {
	Issues []Issue // at least one, at most MaxIssues
	// More says that there were further issues.
	More bool
}

// Issue is one fault of a value.
type Issue struct {
	// Path is the JSON pointer (RFC 6901) of what is at fault, "" for the whole.
	Path string
	// Message says what is wrong: "must be at least 1 (got 0)".
	Message string

	fault fault
	level int // how many names the path has
}

// Error lists the issues, separated by semicolons.
func (e *ValidationError) Error() string {
	var b strings.Builder
	for i, issue := range e.Issues {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(issue.String())
	}
	if e.More {
		b.WriteString("; and more")
	}
	return b.String()
}

// String is "/path: message", or the message where the path is empty.
func (i Issue) String() string {
	if i.Path == "" {
		return i.Message
	}
	return i.Path + ": " + i.Message
}

// SyntaxError says where bytes stop being the well-formed JSON that is asked
// for here (see the package comment).
type SyntaxError struct {
	Offset  int // in bytes
	Message string
}

// Error names the fault and the offset.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("malformed JSON at byte %d: %s", e.Offset, e.Message)
}

// err is the error of a scan that has failed.
func (s *scan) err() error {
	return &SyntaxError{Offset: s.errAt, Message: s.syntax}
}

// fault is a kind of issue, by which alternatives are told apart.
type fault uint8

const (
	faultOther fault = iota
	faultType
	faultValue // not in enum, not const
)

// explanation collects issues.
type explanation struct {
	path     []string
	base     int // how much of the path was there before
	issues   []Issue
	more     bool
	optional bool   // the property that was entered last is
	subject  string // what the message is about, if not the value itself
}

func (x *explanation) enter(name string) { x.path = append(x.path, name) }
func (x *explanation) leave()            { x.path = x.path[:len(x.path)-1] }

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// full reports whether further issues would only be counted as more.
func (x *explanation) full() bool { return x != nil && x.more }

func (x *explanation) add(f fault, format string, args ...any) {
	if len(x.issues) == MaxIssues {
		x.more = true
		return
	}
	x.append(Issue{Path: x.pointer(), Message: x.subject + fmt.Sprintf(format, args...), fault: f, level: len(x.path)})
}

func (x *explanation) append(issue Issue) {
	switch {
	case len(x.issues) == MaxIssues:
		x.more = true
	case !slices.ContainsFunc(x.issues, func(i Issue) bool { return i.Path == issue.Path && i.Message == issue.Message }):
		x.issues = append(x.issues, issue)
	}
}

func (x *explanation) wrongType(want kinds, got []byte) {
	hint := ""
	if got[0] == 'n' && x.optional {
		hint = "; leave the property out instead"
	}
	x.add(faultType, "must be %s (got %s%s)", want, shown(got), hint)
}

func (x *explanation) notMember(e *enumRule, got []byte) {
	x.add(faultValue, "must be %s (got %s)", e, shown(got))
}

func (x *explanation) unknown(o *objectRule, name string) {
	var known []string
	for _, f := range o.fields {
		if f.declared {
			known = append(known, f.name)
		}
	}
	hint := ""
	if close := closest(name, known); close != "" {
		hint = fmt.Sprintf("; did you mean %s?", quoted([]byte(close)))
	} else if len(known) > 0 && len(known) <= 10 {
		hint = "; known are " + list(known, "and")
	}
	x.leave()
	x.add(faultOther, "unknown property %s%s", quoted([]byte(name)), hint)
	x.enter(name)
}

// noAlternative says why none of several schemas, whose failures are given,
// accepts the value got.
func (x *explanation) noAlternative(failures []*explanation, got []byte) {
	var viable []*explanation
	for _, f := range failures {
		if !f.other() {
			viable = append(viable, f)
		}
	}
	if len(viable) == 1 {
		for _, issue := range viable[0].issues {
			x.append(issue)
		}
		return
	}
	if len(viable) == 0 {
		viable = failures
	}
	const shownAlternatives = 5
	var reasons []string
	for i, f := range viable {
		if i == shownAlternatives || len(f.issues) == 0 {
			break
		}
		reason := f.issues[0]
		reason.Path = strings.TrimPrefix(reason.Path, x.pointer())
		if text := reason.String(); !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	if len(reasons) == 0 {
		x.add(faultOther, "must match one of the alternatives (got %s)", shown(got))
		return
	}
	x.add(faultOther, "must match one of %d alternatives: %s", len(failures), strings.Join(reasons, ", or "))
}

// other reports whether the failure shows that another alternative was meant:
// the value's own type, or a constant in it, is not this one's.
func (x *explanation) other() bool {
	return slices.ContainsFunc(x.issues, func(i Issue) bool {
		return i.fault == faultType && i.level == x.base || i.fault == faultValue && i.level <= x.base+1
	})
}

func (x *explanation) pointer() string {
	var path strings.Builder
	for _, name := range x.path {
		path.WriteByte('/')
		pointerEscape.WriteString(&path, name)
	}
	return path.String()
}
