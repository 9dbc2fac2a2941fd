//go:build !linux

package shell

// endSession does nothing: these systems have no simple way to list the members of a session.
func endSession(int) {}

// groupChildren returns nothing, for the same reason.
func groupChildren(int) []string { return nil }

// leaderWithin is about sandboxes, which are for Linux.
func leaderWithin(int) int { return 0 }
