// Package wiretest judges MCP messages by their protocol revision: a [Validator]
// holds one frame against the revision's JSON schema, and a [Checker] follows
// a whole connection and adds the rules that no schema can state (ids,
// progress, subscriptions, what belongs to which era). It is meant for tests:
// tap a connection, feed every frame, expect no violation.
//
// A frame is one message (or, in revision 2025-03-26, one batch) as it is on
// the wire, without what delimits it there.
//
// The schemas are those of the specification, embedded. One thing in them is
// corrected while they are loaded: where schema.ts says number (and, for any
// JSON value, null), the generated schema.json says integer, in ElicitResult's
// content and in JSONValue. schema.ts is the source of truth, so 1.5 passes.
package wiretest

import (
	"embed"
	"slices"
)

// Role says who sent a frame.
type Role int

const (
	Client Role = iota
	Server
)

// String returns "client" or "server".
func (r Role) String() string {
	if r == Server {
		return "server"
	}
	return "client"
}

func (r Role) peer() Role { return 1 - r }

const (
	batching     = "2025-03-26" // the only revision with batches
	latestLegacy = "2025-11-25"
	firstModern  = "2026-07-28"
)

// Revisions returns the known protocol revisions, oldest first.
func Revisions() []string {
	return []string{"2024-11-05", batching, "2025-06-18", latestLegacy, firstModern}
}

func isLegacy(revision string) bool {
	return revision < firstModern && slices.Contains(Revisions(), revision)
}

func isModern(revision string) bool {
	return revision >= firstModern && slices.Contains(Revisions(), revision)
}

//go:embed testdata/*/schema.json
var schemas embed.FS
