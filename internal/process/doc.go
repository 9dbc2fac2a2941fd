// Package process starts child processes and ends them with everything that they have started. It
// finds programs that the user has in a terminal, even if a desktop application with a shorter PATH
// starts this process ([Resolve]), and it ends the children even if this process is killed: on
// POSIX by a small shell that outlives it, on Windows by a Job Object.
//
//	child, err := process.Command{Path: "npx", Args: []string{"-y", "some-server"}}.Start(ctx)
//	defer child.Close()
//
// Package transport/stdio runs servers with it, and package internal/builtin/shell its shells.
package process
