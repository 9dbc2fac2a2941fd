package doctor

import (
	"context"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/term"
)

// warnOfCluster warns of weaknesses of the cluster that the running dowel belongs to. Without one,
// it says which servers ask for a cluster.
func warnOfCluster(ctx context.Context, f *factory.Factory, chosen []hub.Definition) {
	running := factory.RunningDaemon()
	s, err := running.Status(ctx)
	if err != nil || s.Cluster == nil { // no dowel runs, or one without replicas
		for _, d := range chosen {
			if d.Sharing == config.ShareInCluster && d.Note != "" {
				f.Warn("%s: %s", d.Name, term.Line(d.Note))
			}
		}
		return
	}
	sync := replica.SyncUnknown
	if s.Cluster.Connected {
		sync, _ = running.ClusterSync(ctx) // a dowel of an earlier version does not know
	}
	for _, text := range s.Cluster.Warnings(sync) {
		f.Warn("%s", term.Line(text))
	}
	for _, text := range s.Cluster.Notes(sync) {
		f.Remark("%s", term.Line(text))
	}
}
