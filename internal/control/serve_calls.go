package control

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// addTools adds the paths with which a user tries tools, prompts and resources.
func (d Running) addTools(mux *http.ServeMux, protect func(http.HandlerFunc) http.HandlerFunc) {
	mux.HandleFunc("GET /v1/catalog", protect(d.serveCatalog))
	mux.HandleFunc("GET /v1/item", protect(d.serveItem))
	if d.Calls == nil {
		return
	}
	mux.HandleFunc("POST /v1/form", protect(d.serveForm))
	mux.HandleFunc("POST /v1/check", protect(d.serveCheck))
	mux.HandleFunc("POST /v1/complete", protect(d.serveCompletion))
	mux.HandleFunc("POST /v1/watch", protect(d.serveWatch))
	mux.HandleFunc("GET /v1/calls", protect(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, d.Calls.List()) }))
	mux.HandleFunc("POST /v1/calls", protect(func(w http.ResponseWriter, r *http.Request) {
		var q CallRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			writeOutcome(w, err)
			return
		}
		info, err := d.Calls.Start(q)
		writeResult(w, info, err)
	}))
	mux.HandleFunc("GET /v1/saved", protect(d.serveSaved))
	mux.HandleFunc("POST /v1/saved", protect(d.serveSaving))
	mux.HandleFunc("POST /v1/saved/remove", protect(d.serveSavedRemoval))
	d.addAsks(mux, protect)
	mux.HandleFunc("GET /v1/calls/{id}", protect(d.serveCall))
	mux.HandleFunc("POST /v1/calls/{id}/cancel", protect(func(w http.ResponseWriter, r *http.Request) {
		writeOutcome(w, d.Calls.Cancel(pathID(r)))
	}))
}

// pathID returns the number in the path, or 0, which nothing has.
func pathID(r *http.Request) uint64 {
	id, _ := strconv.ParseUint(r.PathValue("id"), 10, 64) // 0 for a wrong one
	return id
}

// serveCall answers with the events of a call until it ends, one JSON object a line.
func (d Running) serveCall(w http.ResponseWriter, r *http.Request) {
	ctx, end := requestContext(r, d.Life)
	defer end()
	if d.Calls.findCall(pathID(r)) == nil {
		writeOutcome(w, errNoCall)
		return
	}
	lines := newLineWriter(w)
	_ = d.Calls.Follow(ctx, pathID(r), func(e CallEvent) error { return lines.writeLine(e) }) // fails if the page is gone
}
