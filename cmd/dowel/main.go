// Command dowel talks to the servers of the Model Context Protocol: it lists what they offer,
// calls, reads and watches it, shows the wire, and serves the servers that are built into it.
package main

import (
	"context"
	"os"

	"github.com/dowel-mcp/dowel/internal/cli"
	"github.com/dowel-mcp/dowel/internal/modelkeys"
)

func main() {
	modelkeys.Hide()
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
