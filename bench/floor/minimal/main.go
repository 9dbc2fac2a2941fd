// Command minimal is the floor as a server: the least program that answers calls on stdio.
package main

import (
	"os"

	"github.com/dowel-mcp/dowel/internal/floor"
)

type stdio struct{ *os.File }

func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }

func main() { floor.Serve(floor.Lines(stdio{os.Stdin}), 1) }
