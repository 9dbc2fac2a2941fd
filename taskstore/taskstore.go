// Package taskstore keeps the tasks of servers and gateways, so that they outlive the process:
//
//	store := taskstore.OnDisk("/var/lib/example/tasks")
//	defer store.Close()
//	s := server.New("example", "1.0.0", &server.Options{Keys: keys, Tasks: store})
//
// A program that does not import this package keeps its tasks in memory, and links none of it.
package taskstore

import (
	"github.com/dowel-mcp/dowel/internal/taskengine"
	"github.com/dowel-mcp/dowel/internal/tasks"
)

// OnDisk returns a store in a folder, for the Tasks of server.Options and gateway.Options. It runs
// an embedded NATS server with JetStream, which listens nowhere and starts with the first task.
// Only one process at a time may use a folder; tasks of another one are refused. Every state of a
// task that a client has seen is on the disk: it survives the end of the process, and a loss of
// power as far as the disk keeps what it has synced. The files hold arguments and results in plain
// text, in a folder that only its user can read.
//
// Several servers and gateways may share a store. Close it after them.
func OnDisk(folder string) tasks.Store { return taskengine.OnDisk(folder) }
