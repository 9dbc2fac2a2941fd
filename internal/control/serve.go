package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/hub"
)

// Controller does what is asked of a running dowel. Its methods are called concurrently. An error's text is shown to the
// user.
type Controller interface {
	Status() Status
	// Do does one thing with a server: enable, disable, restart, trust.
	Do(ctx context.Context, name, verb string) error
	// Reload reads the configuration again.
	Reload(ctx context.Context) error
	// Yield ends this dowel's being the one that runs, for another that takes its place. The error says why it does not.
	Yield(ctx context.Context) error
}

// ErrNoServer is what a Controller wraps for a name that there is not.
var ErrNoServer = errors.New("there is no such server")

// Handler returns the running dowel's side. Mount it where only the user can reach it. mcp, which may be nil, is the
// gateway, at /mcp. Streams of events and logs end with life: their other end hears by that of the dowel's.
func Handler(life context.Context, c Controller, h *hub.Hub, mcp http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) { reply(w, c.Status()) })
	mux.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, r *http.Request) { done(w, c.Reload(r.Context())) })
	mux.HandleFunc("POST /v1/yield", func(w http.ResponseWriter, r *http.Request) { done(w, c.Yield(r.Context())) })
	mux.HandleFunc("POST /v1/servers/{name}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		done(w, c.Do(r.Context(), r.PathValue("name"), r.PathValue("verb")))
	})
	mux.HandleFunc("GET /v1/servers/{name}/logs", func(w http.ResponseWriter, r *http.Request) { logs(w, r, h, life) })
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) { events(w, r, h, life) })
	if mcp != nil {
		mux.Handle("/mcp", mcp)
		mux.Handle("/mcp/", mcp)
	}
	return mux
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // who has gone needs no answer
}

// failure is the form of an error on the wire.
type failure struct {
	Error string `json:"error"`
}

func done(w http.ResponseWriter, err error) {
	if err == nil {
		reply(w, struct{}{})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(failure{err.Error()})
}

// logs writes what has happened to a server, the lines of its stderr among it, one JSON object a line; with follow what comes,
// too.
func logs(w http.ResponseWriter, r *http.Request, h *hub.Hub, life context.Context) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(life, stop)()
	name := r.PathValue("name")
	u := h.Upstream(name)
	if u == nil {
		done(w, ErrNoServer)
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

// events writes what happens, one JSON object a line.
func events(w http.ResponseWriter, r *http.Request, h *hub.Hub, life context.Context) {
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
