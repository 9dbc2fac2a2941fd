//go:build !linux

package shell

// endSession does nothing: these systems have no simple way to list the members of a session.
func endSession(int) {}

// groupChildren returns nothing: these systems have no simple way to list processes.
func groupChildren(int) []string { return nil }

// leaderWithin is used for sandboxes only, which need Linux.
func leaderWithin(int) int { return 0 }
