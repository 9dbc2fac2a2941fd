package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/mcp"
)

// Controller carries out requests to a running dowel. Its methods are called concurrently. Users
// see the texts of its errors.
type Controller interface {
	// Status returns the status of this dowel.
	Status() Status
	// Do changes a server: verb is enable, disable or restart.
	Do(ctx context.Context, name, verb string) error
	// Token returns the token of the gateway's HTTP address. renew replaces the token first.
	Token(ctx context.Context, renew bool) (string, error)
	// Reload reads the configuration again.
	Reload(ctx context.Context) error
	// Yield lets another dowel take the place of this one. The error says why it does not.
	Yield(ctx context.Context) error
	// RequestStop makes this dowel end soon. The error says why it does not.
	RequestStop(ctx context.Context) error
}

// ErrNoServer is wrapped by a Controller's error for an unknown server.
var ErrNoServer = errors.New("there is no such server")

// Handler returns the HTTP handler of a running dowel. Only the user may reach it. mcp serves the
// gateway at /mcp; nil serves none. frames has the frames of the hub's servers, and recorder the
// journal; both may be nil. Streams of events, logs, frames and the journal end with life, which
// tells their readers that this dowel ends.
func Handler(life context.Context, c Controller, h *hub.Hub, frames *Frames, recorder *journal.Recorder, gateway http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, c.Status()) })
	mux.HandleFunc("POST /v1/reload", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { writeOutcome(w, c.Reload(r.Context())) }))
	mux.HandleFunc("POST /v1/authorize", refuseOwnServers(func(w http.ResponseWriter, _ *http.Request) { writeOutcome(w, nil) }))
	mux.HandleFunc("POST /v1/yield", func(w http.ResponseWriter, r *http.Request) { writeOutcome(w, c.Yield(r.Context())) })
	mux.HandleFunc("POST /v1/stop", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { writeOutcome(w, c.RequestStop(r.Context())) }))
	mux.HandleFunc("GET /v1/token", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { writeToken(w, r, c, false) }))
	mux.HandleFunc("POST /v1/token/renew", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { writeToken(w, r, c, true) }))
	mux.HandleFunc("POST /v1/servers/{name}/{verb}", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) {
		writeOutcome(w, c.Do(r.Context(), r.PathValue("name"), r.PathValue("verb")))
	}))
	mux.HandleFunc("POST /v1/servers/{name}/frames", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) {
		streamFrames(w, r, h, frames, life)
	}))
	mux.HandleFunc("GET /v1/servers/{name}/logs", func(w http.ResponseWriter, r *http.Request) { streamLogs(w, r, h, life) })
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) { serveEvents(w, r, h, life) })
	if recorder != nil {
		mux.HandleFunc("GET /v1/journal", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { streamJournal(w, r, recorder, life) }))
	}
	if gateway != nil {
		mux.Handle("/mcp", gateway)
		mux.Handle("/mcp/", gateway)
	}
	return mux
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // a client that is gone needs no answer
}

// tokenAnswer is the JSON form of the gateway's token.
type tokenAnswer struct {
	Token string `json:"token"`
}

// writeToken answers with the token of the gateway's HTTP address, or an error.
func writeToken(w http.ResponseWriter, r *http.Request, c Controller, renew bool) {
	token, err := c.Token(r.Context(), renew)
	if err != nil {
		writeOutcome(w, err)
		return
	}
	writeJSON(w, tokenAnswer{token})
}

// failure is the JSON form of an error.
type failure struct {
	Error string `json:"error"`
}

// writeOutcome answers with an empty object or an error.
func writeOutcome(w http.ResponseWriter, err error) {
	if err == nil {
		writeJSON(w, struct{}{})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(failure{err.Error()})
}

// streamLogs answers with the history of a server, one JSON object a line. With ?follow it
// continues with new events.
func streamLogs(w http.ResponseWriter, r *http.Request, h *hub.Hub, life context.Context) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(life, stop)()
	name := r.PathValue("name")
	u := h.Upstream(name)
	if u == nil {
		writeOutcome(w, ErrNoServer)
		return
	}
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w).Flush
	follow := h.Events(ctx, hub.StateChanged, hub.StderrWritten)
	for _, e := range u.History() {
		_ = out.Encode(EventOf(e))
	}
	if r.URL.Query().Get("follow") == "" {
		return
	}
	_ = flush()
	for e := range follow {
		if e.Upstream == name && (out.Encode(EventOf(e)) != nil || flush() != nil) {
			return
		}
	}
}

// serveEvents answers with events of all servers, one JSON object a line.
func serveEvents(w http.ResponseWriter, r *http.Request, h *hub.Hub, life context.Context) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(life, stop)()
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w).Flush
	w.WriteHeader(http.StatusOK)
	all := h.Events(ctx, hub.StateChanged, hub.CatalogChanged)
	_ = flush()
	for e := range all {
		if out.Encode(EventOf(e)) != nil || flush() != nil {
			return
		}
	}
}

// HeaderClient is the header field with the name of the client that a process speaks for.
const HeaderClient = "Dowel-Client"

// HeaderToolSearch is the header field with which a process gets the pinned tools and a search in
// place of all tools, for a client that was started with --tool-search. Its value is "true".
const HeaderToolSearch = "Dowel-Tool-Search"

// Principal returns the principal of a request by [HeaderClient]. It is not verified: only the user
// can reach the endpoint of [Handler].
func Principal(r *http.Request) mcp.Principal { return mcp.Principal{ID: r.Header.Get(HeaderClient)} }
