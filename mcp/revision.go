package mcp

// Revision names a revision of the protocol by its date.
type Revision string

// The revisions that dowel speaks.
const (
	Revision20241105 Revision = "2024-11-05"
	Revision20250326 Revision = "2025-03-26"
	Revision20250618 Revision = "2025-06-18"
	Revision20251125 Revision = "2025-11-25"
	Revision20260728 Revision = "2026-07-28"

	LatestRevision       = Revision20260728
	LatestLegacyRevision = Revision20251125
)

// Revisions returns the revisions that dowel speaks, newest first.
func Revisions() []Revision {
	return []Revision{Revision20260728, Revision20251125, Revision20250618, Revision20250326, Revision20241105}
}

// Known reports whether dowel speaks the revision.
func (r Revision) Known() bool {
	switch r {
	case Revision20241105, Revision20250326, Revision20250618, Revision20251125, Revision20260728:
		return true
	}
	return false
}

// Modern reports whether requests of the revision carry their version (2026-07-28 and later).
// Legacy revisions negotiate it in a handshake.
func (r Revision) Modern() bool { return r >= Revision20260728 }
