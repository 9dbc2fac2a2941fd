// Package gateway serves a hub as one MCP server. A [Gateway] is an [mcp.Handler]: give it to a transport.
//
//	g := gateway.New(h, nil)
//	http.Handle("/mcp", streamable.Handler(g, nil))
//	http.Handle("/mcp/files", streamable.Handler(g.Only("files"), nil))
//
// # The bridge
//
// Clients and upstreams speak different revisions, each its own, and neither notices. The edges of package transport do the
// most of it; what is left is here. An upstream of an older revision asks while it works on a call: elicitation, sampling,
// roots. Then the call is parked, the answer to the client is input_required, and its retry finds the parked call by the sealed
// request state and goes on with it. Edges make live requests of that for clients of older revisions. A parked call ends after
// [Options.Park], and is cancelled at its upstream. What an upstream of today asks passes through, with its own state.
//
// # What changes on the way
//
// Ids, progress tokens, subscription ids, the protocol's own keys of _meta, resultType and caching hints are the edges'.
// The gateway changes names of tools and prompts, URIs that several upstreams have, and nothing else: what it does not have
// to read passes byte for byte. Error -32042 of an older upstream becomes a request to visit its URLs.
//
// # What is missing
//
// Lists hold what the upstreams offer that can be called. The _meta of a list names those that cannot, and why, under
// [MetaMissing]; the tool dowel__status tells a model.
package gateway
