package watch

// isNotFolder is false: Windows reports a path below a file as a missing path.
func isNotFolder(error) bool { return false }
