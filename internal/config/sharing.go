package config

import "github.com/dowel-mcp/dowel/hub"

// ShareInCluster is one connection for all clients of all replicas of a cluster. A hub takes it for
// [hub.Shared]; what the replicas do is in the target.
const ShareInCluster hub.Sharing = "cluster"
