package streamable_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// askingReplica serves a replica with a tool that asks for a name and returns it.
func askingReplica(t *testing.T, keys *mcp.Keys) string {
	s := server.New("replica", "1", &server.Options{Keys: keys})
	server.Tool(s, "ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
		who, err := server.Ask[person](ctx, "who", "Who?")
		return who.Name, err
	})
	_, web := serve(t, s, streamable.Options{})
	return web.URL + "/mcp"
}

// beginAsk calls the tool and returns the id of its question.
func beginAsk(t *testing.T, url string, in []string) (lines <-chan string, question string) {
	t.Helper()
	lines = postStream(t, url, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask","arguments":{}}}`, in...)
	asked := ""
	for !strings.Contains(asked, "elicitation/create") {
		asked = until(t, lines, "data:")
	}
	_, rest, _ := strings.Cut(asked, `"id":`)
	question, _, _ = strings.Cut(rest, ",")
	return lines, question
}

// postStream sends a request that is answered by a stream, and returns the lines of the stream.
func postStream(t *testing.T, url, body string, fields ...string) <-chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	own := &http.Transport{}
	resp, err := own.RoundTrip(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	lines, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			lines <- in.Text()
		}
	}()
	t.Cleanup(func() { resp.Body.Close(); <-done; own.CloseIdleConnections() })
	return lines
}

// If a load balancer brings the answer to a question to the wrong replica, it must be refused,
// although the session is the same.
func TestAnswerAtAnotherReplica(t *testing.T) {
	keys := new(mcp.Keys)
	one, two := askingReplica(t, keys), askingReplica(t, keys)
	in := inSession(open(t, one, mcp.Revision20251125), mcp.Revision20251125)
	atOne, first := beginAsk(t, one, in)
	atTwo, second := beginAsk(t, two, in)
	answer := func(url, id, name string) int {
		return send(t, "POST", url, `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept","content":{"name":"`+name+`"}}}`, in...).status
	}
	if status := answer(one, second, "for two"); status != 400 {
		t.Errorf("the answer to another replica's question: %d", status)
	}
	if status := answer(one, first, "for one"); status != 202 {
		t.Errorf("the answer: %d", status)
	}
	if status := answer(two, second, "for two"); status != 202 {
		t.Errorf("the answer, to the right one: %d", status)
	}
	for lines, want := range map[<-chan string]string{atOne: "for one", atTwo: "for two"} {
		if got := until(t, lines, "data:"); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
