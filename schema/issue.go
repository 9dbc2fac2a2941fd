package schema

import (
	"fmt"
	"slices"
	"strings"
)

// ValidationError says why a value does not match a schema, in words that a
// person or a model can act on.
type ValidationError struct {
	Issues []Issue // at least one, at most 10
	// More says that there were further issues.
	More bool
}

// Issue is one fault of a value.
type Issue struct {
	// Path is the JSON pointer (RFC 6901) of the faulty value, "" for the whole.
	Path string
	// Message describes the fault, for example "must be at least 1 (got 0)".
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

// syntaxError says where bytes stop being well-formed JSON, as the package comment defines it.
type syntaxError struct {
	offset  int // in bytes
	message string
}

// Error names the fault and the offset.
func (e *syntaxError) Error() string {
	return fmt.Sprintf("malformed JSON at byte %d: %s", e.offset, e.message)
}

// syntaxError is the error of a scan that has failed.
func (s *scan) syntaxError() error {
	return &syntaxError{offset: s.errAt, message: s.syntax}
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
	subject  string // the subject of the message, if not the value itself
}

func (x *explanation) enterPath(name string) { x.path = append(x.path, name) }
func (x *explanation) leavePath()            { x.path = x.path[:len(x.path)-1] }

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// isFull reports whether further issues would only be counted as more.
func (x *explanation) isFull() bool { return x != nil && x.more }

func (x *explanation) addIssue(f fault, format string, args ...any) {
	if len(x.issues) == maxIssues {
		x.more = true
		return
	}
	x.appendIssue(Issue{Path: x.jsonPointer(), Message: x.subject + fmt.Sprintf(format, args...), fault: f, level: len(x.path)})
}

func (x *explanation) appendIssue(issue Issue) {
	switch {
	case len(x.issues) == maxIssues:
		x.more = true
	case !slices.ContainsFunc(x.issues, func(i Issue) bool { return i.Path == issue.Path && i.Message == issue.Message }):
		x.issues = append(x.issues, issue)
	}
}

func (x *explanation) addWrongType(want kinds, got []byte) {
	hint := ""
	if got[0] == 'n' && x.optional {
		hint = "; leave the property out instead"
	}
	x.addIssue(faultType, "must be %s (got %s%s)", want.listTypes(), describeValue(got), hint)
}

func (x *explanation) addNotInEnum(e *enumRule, got []byte) {
	x.addIssue(faultValue, "must be %s (got %s)", e.listValues(), describeValue(got))
}

func (x *explanation) addUnknown(o *objectRule, name string) {
	var known []string
	for _, f := range o.fields {
		if f.declared {
			known = append(known, f.name)
		}
	}
	hint := ""
	if close := closestName(name, known); close != "" {
		hint = fmt.Sprintf("; did you mean %s?", quoteText([]byte(close)))
	} else if len(known) > 0 && len(known) <= 10 {
		hint = "; known are " + joinWords(known, "and")
	}
	x.leavePath()
	x.addIssue(faultOther, "unknown property %s%s", quoteText([]byte(name)), hint)
	x.enterPath(name)
}

// addNoAlternative explains why none of several schemas accepts the value got. failures holds the
// explanation of each.
func (x *explanation) addNoAlternative(failures []*explanation, got []byte) {
	var viable []*explanation
	for _, f := range failures {
		if !f.meansOther() {
			viable = append(viable, f)
		}
	}
	if len(viable) == 1 {
		for _, issue := range viable[0].issues {
			x.appendIssue(issue)
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
		reason.Path = strings.TrimPrefix(reason.Path, x.jsonPointer())
		if text := reason.String(); !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	if len(reasons) == 0 {
		x.addIssue(faultOther, "must match one of the alternatives (got %s)", describeValue(got))
		return
	}
	x.addIssue(faultOther, "must match one of %d alternatives: %s", len(failures), strings.Join(reasons, ", or "))
}

// meansOther reports whether the failure shows that another alternative was meant:
// the value's own type, or a constant in it, is not this one's.
func (x *explanation) meansOther() bool {
	return slices.ContainsFunc(x.issues, func(i Issue) bool {
		return i.fault == faultType && i.level == x.base || i.fault == faultValue && i.level <= x.base+1
	})
}

func (x *explanation) jsonPointer() string {
	var path strings.Builder
	for _, name := range x.path {
		path.WriteByte('/')
		_, _ = pointerEscape.WriteString(&path, name)
	}
	return path.String()
}
