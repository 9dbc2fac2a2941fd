// Command dowel talks to the servers of the Model Context Protocol: it lists what they offer, calls, reads and watches
// it, shows the wire, and serves the servers that are built into it.
package main

import (
	"context"
	"os"

	"github.com/dowel-mcp/dowel/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
