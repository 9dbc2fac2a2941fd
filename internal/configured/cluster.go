package configured

import (
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// Notes of servers that have "sharing": "cluster" without an effect.
const (
	noCluster = `its "sharing": "cluster" means the same as "shared", because this dowel is no replica of a cluster (dowel up --cluster)`
	noProcess = `its "sharing": "cluster" means the same as "shared", because it is no command: each replica connects to it`
)

// shareInCluster makes a server one that runs once in the cluster, if this process is a replica.
func (s *Source) shareInCluster(d hub.Definition) hub.Definition {
	command, isCommand := d.Target.(stdio.Command)
	note := ""
	switch {
	case !isCommand:
		note = noProcess
	case s.opts.ShareInCluster == nil:
		note = noCluster
	default:
		d.Target = s.opts.ShareInCluster(d.Name, command)
	}
	if d.Note != "" && note != "" {
		note = "; " + note
	}
	d.Note += note
	return d
}
