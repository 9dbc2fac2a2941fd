package tasks

import "github.com/dowel-mcp/dowel/internal/replica"

// NoRunner is the runner of a task that no process runs, although it works.
const NoRunner = "-"

// Shared returns the store of the replicas that share keys, a pointer to mcp.Keys. It returns nil
// if there is none.
func Shared(keys any) Store {
	if network, ok := replica.Of(keys).(interface{ Tasks() Store }); ok {
		return network.Tasks()
	}
	return nil
}
