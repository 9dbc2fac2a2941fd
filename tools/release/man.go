package main

import (
	"os"
	"path/filepath"
)

// writeManPages is replaced once the command tree can be imported.
func writeManPages(folder string) error { return os.MkdirAll(filepath.Join(folder, "man"), 0o755) }
