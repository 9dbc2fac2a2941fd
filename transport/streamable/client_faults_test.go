package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// answering answers a call with a status, a content type and a body in which %s is the id.
func answering(status int, media, body string) func(http.ResponseWriter, *http.Request, posted) {
	return func(w http.ResponseWriter, _ *http.Request, m posted) {
		w.Header()["Content-Type"] = []string{media}
		if media == "" {
			w.Header()["Content-Type"] = nil
		}
		w.WriteHeader(status)
		fmt.Fprint(w, strings.ReplaceAll(body, "%s", string(m.ID)))
	}
}

const errorBody = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such tool"}}`

// The client's reaction to invalid answers to a call.
func TestBadAnswers(t *testing.T) {
	const (
		fine       = "fine"
		refused    = "refused"    // *mcp.Error
		status     = "status"     // *streamable.HTTPError
		connection = "connection" // mcp.ErrConnection
		other      = "other"
	)
	truncated := func(w http.ResponseWriter, _ *http.Request, m posted) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, said(m, "cut")[:30])
		abort()
	}
	result := `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":"fine"}]}}`
	for _, test := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, posted)
		want   string
		says   string
	}{
		{"JSON", answering(200, "application/json", result), fine, ""},
		{"JSON with parameters and spaces", answering(200, "Application/JSON ; charset=utf-8", "\n "+result+"\r\n"), fine, ""},
		{"JSON without a content type", answering(200, "", result), fine, ""},
		{"an id that is a string", answering(200, "application/json", strings.Replace(result, `%s`, `"%s"`, 1)), fine, ""},
		{"an empty body", answering(200, "application/json", ""), other, "no message"},
		{"an empty body without a content type", answering(200, "", ""), other, "no message"},
		{"white space", answering(200, "application/json", " \n"), other, "no message"},
		{"202 without a body", answering(202, "", ""), other, "no message"},
		{"204", answering(204, "", ""), other, "no message"},
		{"a page", answering(200, "text/html", "<p>Sign in"), status, "200"},
		{"a picture", answering(200, "image/png", "\x89PNG"), status, "200"},
		{"half a document", answering(200, "application/json", result[:40]), other, ""},
		{"no message of the protocol", answering(200, "application/json", `{"ok":true}`), other, ""},
		{"invalid UTF-8", answering(200, "application/json", strings.Replace(result, "fine", "\xff", 1)), other, ""},
		{"a response to another id", answering(200, "application/json", strings.Replace(result, "%s", "12345", 1)), other, "without a response"},
		{"a notification", answering(200, "application/json", `{"jsonrpc":"2.0","method":"notifications/x"}`), other, "without a response"},
		{"a batch", answering(200, "application/json", "["+result+"]"), other, "with a batch"},
		{"a truncated body", truncated, connection, ""},
		{"a body over the limit", answering(200, "application/json", strings.Replace(result, "fine", strings.Repeat("x", smallMessage), 1)), other, "larger than"},
		{"a body over the limit that never ends", endless, other, "larger than"},
		{"an error without an id", answering(200, "application/json", strings.Replace(errorBody, `"id":%s,`, "", 1)), refused, "no such tool"},
		{"400 with an error of the protocol", answering(400, "application/json", errorBody), refused, "no such tool"},
		{"404 with an error of the protocol", answering(404, "application/json", errorBody), refused, "no such tool"},
		{"400 with JSON of another kind", answering(400, "application/json", `{"detail":"bad"}`), status, "bad"},
		{"400 without a body", answering(400, "", ""), status, "400"},
		{"401", answering(401, "application/json", errorBody), status, "401"},
		{"403", answering(403, "text/plain", "keep out"), status, "keep out"},
		{"404 with a page", answering(404, "text/html", "<p>Lost"), status, "404"},
		{"429", answering(429, "application/json", errorBody), status, "429"},
		{"500 with a page", answering(500, "text/html", "<p>Sorry"), status, "500"},
		{"500 with an event stream", answering(500, "text/event-stream", "data: "+errorBody+"\n\n"), status, "500"},
		{"503 with an error of the protocol", answering(503, "application/json", errorBody), status, "503"},
		{"3xx to nowhere", answering(304, "", ""), status, "304"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBothEras(t, func(t *testing.T, r mcp.Revision) {
				b := &fakeServer{post: onCall(test.answer)}
				c := mustDialFake(t, b.start(t), r, client.Options{})
				text, err := callFake(t, c)
				var protocol *mcp.Error
				var answered *streamable.HTTPError
				got := other
				switch {
				case err == nil && text == "fine":
					got = fine
				case errors.As(err, &protocol):
					got = refused
				case errors.As(err, &answered):
					got = status
				case errors.Is(err, mcp.ErrConnection):
					got = connection
				}
				if got != test.want || err != nil && !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %s, want %s: %q, %v", got, test.want, text, err)
				}
				if err != nil && strings.Contains(err.Error(), "<p>") {
					t.Errorf("the error shows a page: %v", err)
				}
				if b.count(mcp.MethodCallTool) != 1 {
					t.Errorf("the call was made %d times", b.count(mcp.MethodCallTool))
				}
				if err := ping(c); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

// endless answers a call with a document without an end.
func endless(w http.ResponseWriter, r *http.Request, _ posted) {
	w.Header().Set("Content-Type", "application/json")
	for r.Context().Err() == nil {
		if _, err := fmt.Fprint(w, strings.Repeat(" ", 1000)); err != nil {
			return
		}
	}
}

// ping sends a request that every fakeServer answers by the protocol.
func ping(c *client.Client) error {
	_, err := client.All(c.Tools(context.Background()))
	return err
}

// An HTTPError must contain the header and at most 4 KiB of the body.
func TestHTTPErrors(t *testing.T) {
	b := &fakeServer{post: onCall(func(w http.ResponseWriter, _ *http.Request, _ posted) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, strings.Repeat("slow down ", 1000))
	})}
	_, err := callFake(t, mustDialFake(t, b.start(t), mcp.LatestRevision, client.Options{}))
	var answered *streamable.HTTPError
	if !errors.As(err, &answered) || answered.Header.Get("Retry-After") != "7" || len(answered.Body) != 4<<10 {
		t.Errorf("%v", err)
	}
	if len(err.Error()) > 400 {
		t.Errorf("the error is %d bytes long", len(err.Error()))
	}
}

// Duplicate responses, and responses to other calls, must be ignored.
func TestResponsesOfOthers(t *testing.T) {
	inBothEras(t, func(t *testing.T, r mcp.Revision) {
		b := &fakeServer{post: onCall(func(w http.ResponseWriter, _ *http.Request, m posted) {
			other := posted{ID: []byte("4711")}
			first := said(m, "first")
			beginStream(w, "data: "+said(other, "another")+"\n\ndata: "+first+"\n\ndata: "+strings.Replace(first, "first", "second", 1)+"\n\n")
		})}
		c := mustDialFake(t, b.start(t), r, client.Options{})
		for range 20 {
			if got, err := callFake(t, c); err != nil || got != "first" {
				t.Fatalf("%q, %v", got, err)
			}
		}
	})
}

// A response may arrive on the stream of another call.
func TestResponseOnAnotherWay(t *testing.T) {
	inBothEras(t, func(t *testing.T, r mcp.Revision) {
		waiting := make(chan posted, 1)
		var b fakeServer
		b.post = onCall(func(w http.ResponseWriter, r *http.Request, m posted) {
			select {
			case waiting <- m: // the first call; its own stream stays silent
				beginStream(w, ": wait\n\n")
				b.silent(r)
			default:
				beginStream(w, "data: "+said(<-waiting, "for the first")+"\n\ndata: "+said(m, "for the second")+"\n\n")
			}
		})
		c := mustDialFake(t, b.start(t), r, client.Options{})
		first := make(chan error, 1)
		go func() {
			got, err := client.Call[string](t.Context(), c, "t", nil)
			if err == nil && got != "for the first" {
				err = fmt.Errorf("got %q", got)
			}
			first <- err
		}()
		polltest.Until(t, "the first call arrives", func() bool { return b.count(mcp.MethodCallTool) == 1 && len(waiting) == 1 })
		if got, err := callFake(t, c); err != nil || got != "for the second" {
			t.Errorf("%q, %v", got, err)
		}
		polltest.Until(t, "the first call ends", func() bool { return len(first) == 1 })
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// A question on the stream of a call is answered in the legacy era and ignored in the modern one.
func TestQuestionOnTheStream(t *testing.T) {
	inBothEras(t, func(t *testing.T, r mcp.Revision) {
		var answers atomic.Int32
		answered := make(chan struct{}, 1)
		b := &fakeServer{}
		b.post = func(w http.ResponseWriter, r *http.Request, m posted) bool {
			switch {
			case m.Method == "": // a response
				answers.Add(1)
				answered <- struct{}{}
				w.WriteHeader(http.StatusAccepted)
				return true
			case m.Method != mcp.MethodCallTool:
				return false
			}
			beginStream(w, `data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}`+"\n\n")
			if r.Header.Get("Mcp-Method") == "" {
				<-answered
			}
			fmt.Fprintf(w, "data: %s\n\n", proper(m))
			return true
		}
		c := mustDialFake(t, b.start(t), r, client.Options{Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
		}}})
		got, err := callFake(t, c)
		if want := int32(1); err != nil || got != "fine" || !r.Modern() && answers.Load() != want || r.Modern() && answers.Load() != 0 {
			t.Errorf("%q, %v; %d answers", got, err, answers.Load())
		}
	})
}

// An error of the protocol may have any size. Only an HTTPError is cut to 4 KiB.
func TestLargeProtocolError(t *testing.T) {
	b := &fakeServer{post: onCall(func(w http.ResponseWriter, _ *http.Request, m posted) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad","data":%q}}`, m.ID, strings.Repeat("x", 10_000))
	})}
	c, err := client.Dial(t.Context(), b.start(t), &client.Options{Wire: client.Wire{Verdicts: new(transport.Verdicts)}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var refused *mcp.Error
	if _, err := callFake(t, c); !errors.As(err, &refused) || refused.Code != -32602 {
		t.Errorf("%v", err)
	}
}
