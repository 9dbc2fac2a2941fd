// Package gateway serves a hub as one MCP server. A [Gateway] is an [mcp.Handler], so every
// transport can serve it:
//
//	g := gateway.New(h, nil)
//	defer g.Close()
//	http.Handle("/mcp", streamable.Handler(g, nil))
//	http.Handle("/mcp/files", streamable.Handler(g.Only("files"), nil))
//
// [Gateway.HTTPHandler] serves all usual paths at once. [Limit] and [Audit] are middlewares.
//
// # Questions
//
// Clients and upstreams may speak different revisions. Package transport translates most of the
// difference; the gateway translates questions. A legacy upstream asks live while it works on a
// call: elicitation, sampling or roots. Its call is parked, and the client gets input_required. The
// client repeats its request with the answers, and the sealed request state identifies the parked
// call, which then continues. The edge of a legacy client asks the questions live instead. A parked
// call is cancelled after Options.ParkTimeout. Questions of a modern upstream pass through with
// their own state.
//
// # What the gateway changes
//
// The edges own ids, progress tokens, subscription ids, the protocol's keys of _meta, resultType
// and caching hints. The gateway changes names of tools and prompts, and URIs that several
// upstreams have. All other bytes pass unchanged. Error -32042 of an older upstream becomes a
// question that asks the user to open its URLs.
//
// # Missing upstreams
//
// A list holds the items of all upstreams that can be called. The list's _meta names the other
// upstreams with the reason, under "dowel/missing" of their _meta; the tool dowel__status tells a
// model the same.
package gateway
