// Package hublink lets packages of this module add to a hub something that its users have no name
// for.
package hublink

import "context"

// AddDialContext adds a function through which the contexts of all later dials of a *hub.Hub pass,
// until remove is called. Package hub sets it.
var AddDialContext func(hub any, change func(ctx context.Context, upstream string) context.Context) (remove func())

// CompareDefinitions compares the definitions of a *hub.Upstream with the accepted ones, after
// another process has changed those. It may wait for the log. Package hub sets it.
var CompareDefinitions func(upstream any)

// ServeUpstream returns an mcp.Handler that serves an upstream of the hub of a *gateway.Gateway as
// the server serves itself, under its own names and with its own capabilities. The hub of another
// replica is its client. Package gateway sets it.
var ServeUpstream func(gateway any, name string) (handler any)

// Redial begins another attempt of a *hub.Upstream that has failed, at once, and does not count it
// as the first one. It does nothing in other states, and reports false while the server starts.
// Package hub sets it.
var Redial func(upstream any, cause string) (ok bool)
