package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// GatewayLimits bound what the clients of the gateway hold, all of them together and each of them.
// 0 means the gateway's default.
type GatewayLimits struct {
	Bytes, ClientBytes         int64
	Streams, ClientStreams     int
	Sessions, ClientSessions   int
	Questions, ClientQuestions int
}

// limitNames are the keys of the object, in the order of the documentation.
var limitNames = []string{"bytes", "clientBytes", "streams", "clientStreams", "sessions", "clientSessions", "questions", "clientQuestions"}

// readLimits reads the object of limits.
func (e *entryReader) readLimits(field string, n *node, into *GatewayLimits) {
	e.recordPosition(field, n)
	if !e.expectKind(field, n, objectNode) {
		return
	}
	counts := map[string]*int{
		"streams": &into.Streams, "clientStreams": &into.ClientStreams, "sessions": &into.Sessions, "clientSessions": &into.ClientSessions,
		"questions": &into.Questions, "clientQuestions": &into.ClientQuestions,
	}
	sizes := map[string]*int64{"bytes": &into.Bytes, "clientBytes": &into.ClientBytes}
	for _, m := range n.members {
		name := field + "." + m.key.text
		switch count, size := counts[m.key.text], sizes[m.key.text]; {
		case count != nil:
			e.readCount(name, m.value, count)
		case size != nil:
			e.recordPosition(name, m.value)
			e.readSize(name, m.value, size)
		default:
			e.addUnknown(name, m.key.at, suggestOrList(m.key.text, limitNames), "dowel does not know this key")
		}
	}
}

// sizeUnits are the units of a size, by their names.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// readSize reads a number of bytes above zero: a number, or a string such as "64MiB".
func (e *entryReader) readSize(field string, n *node, into *int64) {
	text, unit := strings.TrimSpace(n.text), int64(1)
	for _, u := range sizeUnits {
		if number, found := strings.CutSuffix(text, u.name); found && n.kind == stringNode {
			text, unit = strings.TrimSpace(number), u.bytes
		}
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if n.kind != numberNode && n.kind != stringNode || err != nil || value <= 0 || value > math.MaxInt64/unit {
		e.errorf(n.at, fmt.Sprintf("write a number of bytes, or a size such as %q", "64MiB"), "%s must be a size above zero", field)
		return
	}
	*into = value * unit
}
