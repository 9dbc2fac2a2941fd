package config

import (
	"fmt"
	"time"
)

// maxPlausibleTimeout is longer than any intended timeout. A larger number was written for another
// unit.
const maxPlausibleTimeout = 24 * time.Hour

func (e *entryReader) readTimeout(key string, n *node) {
	into, field := &e.s.Total, key
	if n.kind == objectNode { // OpenCode
		e.readTimeoutObject(n)
		return
	}
	if e.d.startTimeout {
		into, field = &e.s.Start, "startTimeout"
	}
	e.readDuration(field, n, e.d.timeout, into)
}

func (e *entryReader) readTimeoutObject(n *node) {
	for _, m := range n.members {
		switch m.key.text {
		case "startup":
			e.readDuration("startTimeout", m.value, e.d.timeout, &e.s.Start)
		case "request":
			e.readDuration("timeout", m.value, e.d.timeout, &e.s.Total)
		default:
			e.addUnknown("timeout."+m.key.text, m.key.at, suggestOrList(m.key.text, []string{"startup", "request"}), "dowel does not know this key")
		}
	}
}

func (e *entryReader) readSeconds(key string, n *node) { e.readFixedUnit(key, n, time.Second) }
func (e *entryReader) readMilliseconds(key string, n *node) {
	e.readFixedUnit(key, n, time.Millisecond)
}

// readFixedUnit reads a timeout with a unit in its name, which is the same in all dialects.
func (e *entryReader) readFixedUnit(key string, n *node, unit time.Duration) {
	switch key {
	case "tool_timeout_sec", "requestTimeout":
		e.readDuration("timeout", n, unit, &e.s.Total)
	default:
		e.readDuration("startTimeout", n, unit, &e.s.Start)
	}
}

// readDuration reads a string such as "90s", or a number of units. If the unit is 0, a number is an
// error in dowel's own files, and has no effect in files of a tool that does not document its unit.
func (e *entryReader) readDuration(field string, n *node, unit time.Duration, into *time.Duration) {
	e.recordPosition(field, n)
	switch n.kind {
	case stringNode:
		d, err := time.ParseDuration(n.text)
		if err != nil || d <= 0 {
			e.errorf(n.at, durationHint(n), "%s cannot be %q: want a duration above zero", field, n.text)
			return
		}
		*into = d
	case numberNode:
		e.readDurationNumber(field, n, unit, into)
	default:
		e.errorf(n.at, `write a string such as "60s"`, "%s must be a duration, not %v", field, n.kind)
	}
}

func (e *entryReader) readDurationNumber(field string, n *node, unit time.Duration, into *time.Duration) {
	if unit == 0 {
		if e.d.isOwn() {
			e.errorf(n.at, durationHint(n), "%s is a number without a unit", field)
		} else {
			e.warnf(n.at, durationHint(n), "%s has no effect: %s does not document the unit of the number", field, e.d.Title)
		}
		return
	}
	value, ok := n.parseNumber()
	if !ok || value <= 0 || value > float64(10*365*maxPlausibleTimeout)/float64(unit) {
		e.errorf(n.at, `write a string such as "60s"`, "%s cannot be %s: want a duration above zero", field, n.text)
		return
	}
	*into = time.Duration(value * float64(unit))
	word := map[time.Duration]string{time.Second: "seconds", time.Millisecond: "milliseconds"}[unit]
	switch {
	case *into > maxPlausibleTimeout:
		e.warnf(n.at, durationHint(n), "%s is %v: in this file the number counts %s", field, *into, word)
	case unit == time.Millisecond && *into < time.Second:
		e.warnf(n.at, fmt.Sprintf(`write "%ss" if seconds were meant`, n.text), "%s is %v: in this file the number counts %s", field, *into, word)
	}
}

// durationHint suggests a duration for a bare number. Large numbers are taken as milliseconds.
func durationHint(n *node) string {
	number := &node{kind: numberNode, text: n.text}
	value, ok := number.parseNumber()
	switch {
	case !ok || value <= 0 || value > 1e12:
		return `write a string such as "60s"`
	case value >= 1000:
		return fmt.Sprintf("did you mean %q?", time.Duration(value*float64(time.Millisecond)).String())
	}
	return fmt.Sprintf("did you mean \"%ss\"?", n.text)
}
