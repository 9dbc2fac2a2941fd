package hub

import "context"

// watchPaths restarts the server when a file changes that it is made of.
func (u *Upstream) watchPaths(ctx context.Context) {}
