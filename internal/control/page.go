package control

import "net/http"

// StatusDocument serves the status as JSON at /status.json, and leads from / to the console at
// home. It only reads. Guard it like the gateway.
func StatusDocument(c Controller, home string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if home == "" {
			http.Error(w, "The console of this dowel is off at this address. On its own machine, run: dowel console", http.StatusNotFound)
			return
		}
		http.Redirect(w, r, home, http.StatusFound)
	})
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		writeJSON(w, c.Status())
	})
	return mux
}
