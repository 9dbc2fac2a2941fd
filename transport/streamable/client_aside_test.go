package streamable_test

import (
	"net/http"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// Progress that arrives on the session stream, and not on the call's own, must be reported during
// the call.
func TestProgressOnTheStandingStream(t *testing.T) {
	calling, told := make(chan posted), make(chan struct{})
	b := &fakeServer{session: "s"}
	b.get = func(w http.ResponseWriter, r *http.Request) {
		beginStream(w, ": open\n\n")
		m := <-calling
		beginStream(w, `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+string(m.ID)+`,"progress":1}}`+"\n\n")
		b.silent(r)
	}
	b.post = onCall(func(w http.ResponseWriter, _ *http.Request, m posted) {
		calling <- m
		<-told
		b.answer(w, m)
	})
	c := mustDialFake(t, b.start(t), mcp.Revision20251125, client.Options{})
	got, err := callFake(t, c, client.CallOptions{OnProgress: func(mcp.ProgressParams) { close(told) }})
	if err != nil || got != "fine" {
		t.Errorf("%q, %v", got, err)
	}
}
