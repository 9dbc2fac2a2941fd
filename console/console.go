// Package console serves dowel's console, a web page on which one sees and tries the servers of a
// hub, as one [http.Handler]:
//
//	h := hub.New(nil)
//	c := console.New(ctx, h, nil)
//	h.Apply(definitions, "the program starts")
//	mux.Handle("/console/", c)
//	mux.Handle("/mcp", c.Record(gateway.New(h, nil), func(g mcp.Handler) http.Handler {
//		return streamable.Handler(g, nil)
//	}))
//	fmt.Println(c.LoginURL("http://127.0.0.1:8080"))
//
// The screens are those of the program dowel: Servers, Tools, Asks, Wire and Audit. Screens that
// need the program's files or models are left out. Servers can be restarted; the program decides
// which ones there are.
//
// # Security
//
// A user of the console can call every tool of the hub, without the limits that a gateway may
// have for its clients. So each request for data needs either the token of a link of
// [Console.LoginURL], or the consent of [Options].Authorize. All routes refuse foreign host names
// and requests of pages of other origins, and no route gives a token away. Messages are kept in
// memory only. Secrets are masked in them by their form; secrets without such a form are shown.
package console

import (
	"context"
	"net/http"
	"sync"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/console"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/mcp"
)

// Options configure [New].
type Options struct {
	// ReadOnly shows everything, and changes and calls nothing.
	ReadOnly bool
	// Hosts are further host names under which browsers reach the console; * is any. Without them,
	// names of this machine are allowed at a loopback address, and addresses at any other. A
	// console behind a proxy, or with a name, needs its name here.
	Hosts []string
	// Authorize decides on each request for data, for a program with a login of its own. An
	// error refuses the request, and the page shows it. It is called concurrently. A request
	// that a page of another origin has made never gets here, so cookies are safe. nil means
	// links of [Console.LoginURL].
	Authorize func(*http.Request) error
}

// Console is an [http.Handler] for the path /console/. It is safe for concurrent use.
type Console struct {
	http.Handler
	console  *console.Console
	recorder *journal.Recorder
	calls    *control.Calls
	trail    *control.AuditTrail
}

// New returns a console of a hub, which works until ctx ends. Connections to servers are recorded
// if they begin later: call New before [hub.Hub.Apply]. nil options mean the zero value.
func New(ctx context.Context, h *hub.Hub, o *Options) *Console {
	if o == nil {
		o = &Options{}
	}
	c := &Console{recorder: journal.New(journal.Options{Secrets: secretmask.NewSet()}), trail: control.NewAuditTrail("")}
	removeDials := hublink.AddDialContext(h, func(ctx context.Context, server string) context.Context {
		return framesink.WithDialing(ctx, c.recorder.ServerConn(server))
	})
	c.trail.Log = audit.NewLog(c.trail, audit.Options{Mask: maskSecrets(h)})
	own := gateway.New(h, nil)
	c.calls = control.NewCalls(ctx, h, func(ctx context.Context, answers client.Answers, revision mcp.Revision) (*client.Client, error) {
		return client.Dial(framesink.WithServing(ctx, c.recorder.ClientConn()), mcp.Chain(own, c.recorder.Middleware(), gateway.Audit(c.trail, gateway.AuditOptions{Mask: maskSecrets(h)})),
			&client.Options{Info: mcp.Implementation{Name: "console", Version: "1"}, Answers: answers, NoOutputCheck: true, NoCache: true,
				Wire: client.Wire{Revision: revision}})
	})
	c.calls.Asks.Record = c.trail.Log.Write
	running := control.Running{Life: ctx, Controller: newController(h), Hub: h, Recorder: c.recorder, Calls: c.calls, Audit: c.trail, Moments: &control.Moments{}}
	c.console = console.New(console.Options{API: control.ConsoleAPI(running), ReadOnly: o.ReadOnly, Hosts: o.Hosts, Authorize: o.Authorize,
		Hidden: []string{"chat", "config"}, IsEmbedded: true})
	c.Handler = c.console
	var following sync.WaitGroup
	following.Go(func() { running.Moments.Follow(ctx, running) })
	context.AfterFunc(ctx, func() {
		removeDials()
		following.Wait()
		_ = c.calls.Close() // its transport is in memory
		own.Close()
		c.recorder.Close()
	})
	return c
}

// LoginURL returns a link below base, such as https://example.com, that opens the console and logs
// in. It counts once, and for a minute. Show it only to users who may use the console. With
// [Options].Authorize it only opens the console.
func (c *Console) LoginURL(base string) string { return c.console.LoginURL(base) }

// Record returns the handler of a gateway whose clients are shown: their calls in Wire and Audit,
// and their open questions in Asks. serve makes an HTTP handler of the gateway, such as
// [streamable.Handler].
//
// [streamable.Handler]: https://pkg.go.dev/github.com/dowel-mcp/dowel/transport/streamable#Handler
func (c *Console) Record(gate mcp.Handler, serve func(mcp.Handler) http.Handler) http.Handler {
	log := gateway.Audit(c.trail, gateway.AuditOptions{Mask: secretmask.Text})
	next := serve(mcp.Chain(gate, c.recorder.Middleware(), c.calls.Asks.Middleware(), log))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(framesink.WithServing(r.Context(), c.recorder.ClientConn())))
	})
}

// maskSecrets returns a function that replaces the secrets of a hub's servers, and everything with
// the form of one.
func maskSecrets(h *hub.Hub) func(string) string {
	return func(text string) string {
		text = secretmask.Text(text)
		for _, u := range h.Upstreams() {
			if d := u.Definition(); d.Mask != nil {
				text = d.Mask(text)
			}
		}
		return text
	}
}
