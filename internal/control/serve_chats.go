package control

import (
	"encoding/json"
	"net/http"
	"time"
)

// addHostedChats adds the paths of conversations whose agents run in this process.
func (d Running) addHostedChats(mux *http.ServeMux, protect func(http.HandlerFunc) http.HandlerFunc) {
	mux.HandleFunc("GET /v1/models", protect(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, d.Chats.Models()) }))
	mux.HandleFunc("POST /v1/chats", protect(func(w http.ResponseWriter, r *http.Request) {
		var o ChatOptions
		err := json.NewDecoder(r.Body).Decode(&o)
		var started chatStarted
		if err == nil {
			started.ID, err = d.Chats.Start(r.Context(), o)
			err = d.record("chat/start", "", started.ID, err)
		}
		writeResult(w, started, err)
	}))
	mux.HandleFunc("POST /v1/chats/{id}/messages", protect(func(w http.ResponseWriter, r *http.Request) {
		var o ChatOptions
		err := json.NewDecoder(r.Body).Decode(&o)
		if err == nil {
			err = d.record("chat/message", "", r.PathValue("id"), d.Chats.Continue(r.Context(), r.PathValue("id"), o.Text))
		}
		writeOutcome(w, err)
	}))
	mux.HandleFunc("POST /v1/chats/{id}/stop", protect(func(w http.ResponseWriter, r *http.Request) {
		writeOutcome(w, d.record("chat/stop", "", r.PathValue("id"), d.Chats.Stop(r.PathValue("id"))))
	}))
	mux.HandleFunc("GET /v1/chats/{id}/draft", protect(d.serveDraft))
}

// chatStarted is the answer to the request for a new conversation.
type chatStarted struct {
	ID string `json:"id"`
}

// draftInterval is the shortest time between two lines of a draft.
const draftInterval = 100 * time.Millisecond

// maxDraft limits the text of a line of a draft, of which the end is left out.
const maxDraft = 64 << 10

// serveDraft answers with the progress of a turn, whenever it has changed, one [ChatProgress] a
// line, until the turn ends.
func (d Running) serveDraft(w http.ResponseWriter, r *http.Request) {
	ctx, end := requestContext(r, d.Life)
	defer end()
	lines := newLineWriter(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	poll := time.NewTicker(draftInterval)
	defer poll.Stop()
	for last := (ChatProgress{}); ; {
		now, isWorking := d.Chats.progressOf(r.PathValue("id"))
		if !isWorking {
			return
		}
		if now.Draft = shorten(now.Draft, maxDraft); now != last {
			last = now
			if lines.writeLine(now) != nil {
				return
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}
