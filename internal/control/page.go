package control

import (
	_ "embed"
	"net/http"
)

//go:embed page.html
var page []byte

// Page returns the status page: HTML at /, and its data as JSON at /status.json. It only reads.
// Guard it like the gateway.
func Page(c Controller) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(page) // a client that is gone needs no page
	})
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		writeJSON(w, c.Status())
	})
	return mux
}
