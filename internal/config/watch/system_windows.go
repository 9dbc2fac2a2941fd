package watch

// notFolder is for others: Windows says that there is no such path.
func notFolder(error) bool { return false }
