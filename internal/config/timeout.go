package config

import (
	"fmt"
	"time"
)

// longest is beyond what anybody means by a timeout: such a number was written for another unit.
const longest = 24 * time.Hour

func (e *entry) timeout(key string, n *node) {
	into, field := &e.s.Total, key
	if n.kind == objectNode { // OpenCode
		e.timeouts(n)
		return
	}
	if e.d.startTimeout {
		into, field = &e.s.Start, "startTimeout"
	}
	e.duration(field, n, e.d.timeout, into)
}

func (e *entry) timeouts(n *node) {
	for _, m := range n.members {
		switch m.key.text {
		case "startup":
			e.duration("startTimeout", m.value, e.d.timeout, &e.s.Start)
		case "request":
			e.duration("timeout", m.value, e.d.timeout, &e.s.Total)
		default:
			e.unknown("timeout."+m.key.text, m.key.at, choose(m.key.text, []string{"startup", "request"}), "the key means nothing to dowel")
		}
	}
}

func (e *entry) seconds(key string, n *node)      { e.fixed(key, n, time.Second) }
func (e *entry) milliseconds(key string, n *node) { e.fixed(key, n, time.Millisecond) }

// fixed reads a timeout whose name tells its unit, in all dialects.
func (e *entry) fixed(key string, n *node, unit time.Duration) {
	switch key {
	case "tool_timeout_sec", "requestTimeout":
		e.duration("timeout", n, unit, &e.s.Total)
	default:
		e.duration("startTimeout", n, unit, &e.s.Start)
	}
}

// duration reads "90s", or a number of units. Without a unit, a number is an error in dowel's own files, and of no effect in those
// of a tool that does not tell what it means.
func (e *entry) duration(field string, n *node, unit time.Duration, into *time.Duration) {
	e.place(field, n)
	switch n.kind {
	case stringNode:
		d, err := time.ParseDuration(n.text)
		if err != nil || d <= 0 {
			e.errorf(n.at, durationHint(n), "%s cannot be %q: it is a duration above zero", field, n.text)
			return
		}
		*into = d
	case numberNode:
		e.number(field, n, unit, into)
	default:
		e.errorf(n.at, `write a string such as "60s"`, "%s must be a duration, not %v", field, n.kind)
	}
}

func (e *entry) number(field string, n *node, unit time.Duration, into *time.Duration) {
	if unit == 0 {
		if e.d.own() {
			e.errorf(n.at, durationHint(n), "%s is a number without a unit", field)
		} else {
			e.warnf(n.at, durationHint(n), "%s has no effect: %s does not tell the unit of the number", field, e.d.Title)
		}
		return
	}
	value, ok := n.number()
	if !ok || value <= 0 || value > float64(10*365*longest)/float64(unit) {
		e.errorf(n.at, `write a string such as "60s"`, "%s cannot be %s: it is a duration above zero", field, n.text)
		return
	}
	*into = time.Duration(value * float64(unit))
	word := map[time.Duration]string{time.Second: "seconds", time.Millisecond: "milliseconds"}[unit]
	switch {
	case *into > longest:
		e.warnf(n.at, durationHint(n), "%s is %v: in this file the number counts %s", field, *into, word)
	case unit == time.Millisecond && *into < time.Second:
		e.warnf(n.at, fmt.Sprintf(`write "%ss" if seconds were meant`, n.text), "%s is %v: in this file the number counts %s", field, *into, word)
	}
}

// durationHint guesses what somebody means who writes a bare number: large ones are milliseconds.
func durationHint(n *node) string {
	number := &node{kind: numberNode, text: n.text}
	value, ok := number.number()
	switch {
	case !ok || value <= 0 || value > 1e12:
		return `write a string such as "60s"`
	case value >= 1000:
		return fmt.Sprintf("did you mean %q?", time.Duration(value*float64(time.Millisecond)).String())
	}
	return fmt.Sprintf("did you mean \"%ss\"?", n.text)
}
