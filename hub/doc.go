// Package hub runs many MCP servers as one: it starts them, keeps them alive, says how they are, and knows what all of them
// together offer.
//
//	h := hub.New(nil)
//	defer h.Close()
//	h.Apply([]hub.Definition{{Name: "files", Target: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "."}}})
//	for event := range h.Events(ctx) { … }
//
// # Upstreams
//
// Each server is an [Upstream] with one state machine, run by one goroutine:
//
//	disabled, needs configuration, needs trust   it is not started; the definition says why
//	starting ──► ready ──► starting …            a connection that is lost is made again at once
//	        └──► failed ──► starting …           with a diagnosis, and after a wait that doubles up to a minute
//	needs authorization                          like failed: the server answers 401 or 403
//	stopped                                      idle or lazy; the next call starts it
//
// All start at the same time; none waits for another. Every change of a state, of what is offered, and every line that a
// server writes to stderr is an [Event].
//
// # Calls
//
// [Upstream.RoundTrip] sends a request as it is. A call to a server that is starting waits for it. What a server asks while it
// works on a call goes to whoever made that call ([Answering]), and to nobody else: where a server of an older revision that
// several use cannot say which call a question belongs to, the question is refused. Options.SerializeAsks of a definition runs
// its calls one at a time instead; [SharePerClient] gives each client a process of its own.
//
// # Catalog
//
// [Hub.Catalog] is what the upstreams offer at this moment, under qualified names: "files.read_file" for people,
// "files__read_file" on the wire. Names on the wire match [A-Za-z0-9_-]{1,64}, depend on nothing but the server's name and
// the tool's, and can be mapped back.
package hub
