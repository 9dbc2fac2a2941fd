// Package hub runs many MCP servers as one: it starts them, keeps them connected, reports their
// states, and merges their tools, prompts and resources into one catalog.
//
//	h := hub.New(nil)
//	defer h.Close()
//	h.Apply([]hub.Definition{{Name: "files", Target: []string{"files-server", "."}}}, "the program starts")
//	for event := range h.Events(ctx) {
//		log.Println(event.Upstream, event.State.Status)
//	}
//
// A [Definition] describes a server. Package gateway serves a hub as one MCP server.
//
// # Upstreams
//
// Each server is an [Upstream] with a state machine that one goroutine runs:
//
//	disabled, needs configuration, needs trust   held: the definition says why
//	starting ──► ready ──► starting …            a lost connection is opened again at once
//	        └──► failed ──► starting …           with a diagnosis, after a wait that doubles up to a minute
//	needs authorization, needs login             like failed: the server answered 401 or 403
//	stopped                                      idle or lazy: the next call starts it
//
// All upstreams start at the same time, and none waits for another. Each change of a state, each
// change of an upstream's items and each line of stderr is an [Event].
//
// # Calls
//
// [Upstream.RoundTrip] sends a request unchanged. A call to a starting server waits for it. A
// question of the server during a call goes to the answerer of that call: see [WithAnswerer]. Over
// stdio and HTTP+SSE a legacy server does not say which call its question belongs to. So the hub
// runs calls that may ask in turns: one caller's at a time, until they have completed or asked.
// Options.Wire.SerializeAsks of a definition runs all calls of the server one at a time, and
// [SharePerClient] gives each client a connection of its own.
//
// # Catalog
//
// The catalog lists the items of all upstreams under qualified names: "files.read_file" for
// people, "files__read_file" on the wire. A name on the wire matches [A-Za-z0-9_-]{1,64}, depends
// only on the names of the server and the item, and can be mapped back to both.
package hub
