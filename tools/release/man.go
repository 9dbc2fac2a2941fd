package main

import (
	"os"
	"path/filepath"

	"github.com/dowel-mcp/dowel/internal/cli"
	"github.com/spf13/cobra/doc"
)

// writeManPages writes one page of section 1 for each command to folder/man.
func (r *release) writeManPages(folder string) error {
	folder = filepath.Join(folder, "man")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root := cli.CommandTree()
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Title: "DOWEL", Section: "1", Source: "dowel " + r.version, Manual: "dowel", Date: &r.time}
	return doc.GenManTree(root, header, folder)
}
