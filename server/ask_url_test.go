package server_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
)

// login is a tool that asks for a visit, which has happened once done says so.
func login(s *server.Server, done func(context.Context) (bool, error)) {
	server.Tool(s, "login", "", func(ctx context.Context, _ anyArgs) (string, error) {
		return "in", server.AskURL(ctx, "login", "Log in.", "https://example.org/login", done)
	})
}

func TestAskURL(t *testing.T) {
	accepted := map[string]string{"login": `{"action":"accept"}`}
	for _, c := range []struct {
		name    string
		after   time.Duration // from the call on, the visit has happened
		answers map[string]string
		want    string
		rounds  string
	}{
		{"has happened", 0, nil, textResult("in"), "[]"},
		{"soon", 3500 * time.Millisecond, accepted, textResult("in"), "[login]"},
		{"takes a while", 25 * time.Second, accepted, textResult("in"), "[login  ]"}, // asked once, then waited for
		{"cancelled", time.Hour, map[string]string{"login": `{"action":"cancel"}`}, `{"content":[{"type":"text","text":"login: the user dismissed the question"}],"isError":true}`, "[login]"},
		{"declined", time.Hour, map[string]string{"login": `{"action":"decline"}`}, `{"content":[{"type":"text","text":"login: the user declined"}],"isError":true}`, "[login]"},
		{"no answer", time.Hour, nil, "too many rounds", "[login login login login login login login login login login login login login login login login]"},
		{"never", time.Hour, accepted, "too many rounds", "[login               ]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				began := time.Now()
				login(s, func(context.Context) (bool, error) { return time.Since(began) >= c.after, nil })
				got, a := ask(t, s, "login", c.answers)
				want(t, got, c.want)
				want(t, fmt.Sprint(a.rounds), c.rounds)
			})
		})
	}
}

func TestAskURLWithoutCompletion(t *testing.T) {
	s := newServer()
	login(s, nil)
	got, a := ask(t, s, "login", map[string]string{"login": `{"action":"accept"}`})
	want(t, got, textResult("in"))
	want(t, fmt.Sprint(a.rounds), "[login]")
}

// TestVisitFails checks that errors reach the client, before the question and while the visit is
// waited for.
func TestVisitFails(t *testing.T) {
	for fails := range 4 {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			looks := 0
			login(s, func(context.Context) (bool, error) {
				if looks++; looks > fails {
					return false, errors.New("no database")
				}
				return false, nil
			})
			got, _ := ask(t, s, "login", map[string]string{"login": `{"action":"accept"}`})
			wantPart(t, got, "no database")
		})
	}
}

// TestVisitWaitsNoLongerThanItsCall ends the wait with the request.
func TestVisitWaitsNoLongerThanItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		login(s, func(context.Context) (bool, error) { return false, nil })
		req := request(mcp.MethodCallTool, `{"name":"login","inputResponses":{"login":{"action":"accept"}}}`)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("gone"))
		defer cancel()
		began := time.Now()
		res, err := s.ServeMCP(ctx, req)
		if res != nil || err == nil || err.Error() != "gone" || time.Since(began) != 2*time.Second {
			t.Errorf("%v, %v after %v", res, err, time.Since(began))
		}
	})
}

// TestVisitBesideAQuestion asks the open questions at once, and keeps the consent.
func TestVisitBesideAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		began := time.Now()
		server.Tool(s, "both", "", func(ctx context.Context, _ anyArgs) (string, error) {
			var name string
			err := server.AskAll(ctx, server.FormQuestion("name", "?", &name),
				server.URLQuestion("login", "?", "https://example.org/", func(context.Context) (bool, error) { return time.Since(began) > 4*time.Second, nil }))
			return name, err
		})
		a := &asker{t: t, h: s, req: request(mcp.MethodCallTool, `{"name":"both"}`)}
		a.answer = func(key string, _ mcp.InputRequest) string {
			switch {
			case key == "login":
				return `{"action":"accept"}`
			case len(a.rounds) == 1:
				return `{}` // no answer: it is asked again
			}
			return accept(`{"value":"Ann"}`)
		}
		want(t, a.run(), textResult("Ann"))
		want(t, fmt.Sprint(a.rounds), "[login+name name]")
	})
}

// A client of the one revision that has a notification for it is told that the visit has happened,
// by the id that it was asked with; others are not.
func TestVisitIsReported(t *testing.T) {
	for _, r := range []mcp.Revision{mcp.Revision20251125, mcp.LatestRevision} {
		t.Run(string(r), func(t *testing.T) {
			s, visited := newServer(), false
			login(s, func(context.Context) (bool, error) { return visited, nil })
			var asked string
			told := make(chan string, 9)
			c, err := client.Dial(t.Context(), s, &client.Options{
				Wire: client.Wire{Revision: r, Tap: mcptest.ClientTap(t)}, Answers: client.Answers{
					ElicitURL: true,
					Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
						asked, visited = q.ElicitationID, true
						return &mcp.ElicitResult{Action: mcp.ElicitAccept}, nil
					},
				},
				OnNotification: func(n mcp.Notification) {
					if n.Method == mcpwire.NotificationElicitationCompleted {
						told <- string(n.Params)
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := client.Call[string](t.Context(), c, "login", nil); err != nil || got != "in" {
				t.Errorf("%q, %v", got, err)
			}
			got := ""
			if !r.Modern() {
				got = <-told
			}
			c.Close()
			switch {
			case r.Modern() && (got != "" || asked != ""):
				t.Errorf("the client was told %s of %q", got, asked)
			case !r.Modern() && (asked == "" || got != `{"elicitationId":"`+asked+`"}`):
				t.Errorf("the client was told %s of %q", got, asked)
			}
			select {
			case got := <-told:
				t.Errorf("the client was told %s too", got)
			default:
			}
		})
	}
}
