package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestURLsThatALegacyServerRequires(t *testing.T) {
	required := &mcp.Error{Code: mcpwire.CodeURLElicitationRequired, Message: "log in", Data: json.RawMessage(
		`{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://x/connect","message":"Log in"}]}`)}
	for _, test := range []struct {
		name   string
		action mcp.ElicitAction
		url    bool
		calls  int
		code   int
	}{
		{"accepted", mcp.ElicitAccept, true, 2, 0},
		{"declined", mcp.ElicitDecline, true, 1, mcpwire.CodeURLElicitationRequired},
		{"not declared", mcp.ElicitAccept, false, 1, mcpwire.CodeURLElicitationRequired},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				h := tools(func(context.Context, *mcp.Request) (*mcp.Result, error) {
					if calls++; calls == 1 {
						return nil, required
					}
					return raw(done), nil
				})
				var shown string
				l := &fakeDialer{name: test.name, handler: h, revision: mcp.Revision20251125}
				c := dialFake(t, l, client.Options{Answers: client.Answers{ElicitURL: test.url, Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
					shown = q.URL
					return &mcp.ElicitResult{Action: test.action}, nil
				}}})
				_, err := client.Call[string](context.Background(), c, "t", nil)
				var answered *mcp.Error
				if errors.As(err, &answered) != (test.code != 0) || answered != nil && answered.Code != test.code || calls != test.calls {
					t.Errorf("got %v after %d calls", err, calls)
				}
				if test.url && shown != "https://x/connect" {
					t.Errorf("the user saw %q", shown)
				}
			})
		})
	}
}

func requires(id, url string) error {
	return &mcp.Error{Code: mcpwire.CodeURLElicitationRequired, Message: "log in",
		Data: fmt.Appendf(nil, `{"elicitations":[{"mode":"url","elicitationId":%q,"url":%q,"message":"Log in"}]}`, id, url)}
}

// consents counts what the user is asked.
func consents(n *int) client.Options {
	return client.Options{Logger: quiet, Limits: client.Limits{Total: time.Second}, Answers: client.Answers{ElicitURL: true, Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		*n++
		return &mcp.ElicitResult{Action: mcp.ElicitAccept}, nil
	}}}
}

// A server that asks for the same visit again and again is given time; the user is asked once.
func TestVisitsBackOff(t *testing.T) {
	for _, test := range []struct {
		name      string
		url       func(call int) string
		questions int
	}{
		{"the same URL", func(int) string { return "https://x/login" }, 1},
		{"another URL each time", func(call int) string { return fmt.Sprint("https://x/login?", call) }, 16},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, questions := 0, 0
				l := &fakeDialer{name: test.name, revision: mcp.Revision20251125, handler: tools(func(context.Context, *mcp.Request) (*mcp.Result, error) {
					calls++
					return nil, requires("e", test.url(calls))
				})}
				c := dialFake(t, l, consents(&questions))
				began := time.Now()
				_, err := client.Call[string](t.Context(), c, "t", nil)
				mustBe(t, err, client.ErrRounds)
				var answered *mcp.Error
				if !errors.As(err, &answered) || answered.Message != "log in" {
					t.Errorf("the error does not say what for: %v", err)
				}
				if calls != 17 || questions != test.questions {
					t.Errorf("%d calls, %d questions", calls, questions)
				}
				// 2, 4, 8, 16 s and 12 times 30 s, each shortened by up to half.
				if took := time.Since(began); took < 195*time.Second || took > 390*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestAVisitEndsWhenTheServerSaysSo(t *testing.T) {
	for _, test := range []struct {
		name   string
		ids    []string
		prompt bool
	}{
		{"complete", []string{"e"}, true},
		{"another one, and nothing", []string{"other", ""}, false},
		{"twice", []string{"e", "e"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, questions := 0, 0
				l := &fakeDialer{name: test.name, revision: mcp.Revision20251125, handler: tools(func(context.Context, *mcp.Request) (*mcp.Result, error) {
					if calls++; calls == 1 {
						return nil, requires("e", "https://x/login")
					}
					return raw(done), nil
				})}
				opts := consents(&questions)
				ask := opts.Answers.Elicit
				opts.Answers.Elicit = func(ctx context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
					for _, id := range test.ids { // the user is quick, or it comes while the question stands
						l.inbound().Notify(mcp.Notification{Method: mcpwire.NotificationElicitationCompleted, Params: fmt.Appendf(nil, `{"elicitationId":%q}`, id)})
					}
					return ask(ctx, q)
				}
				c := dialFake(t, l, opts)
				began := time.Now()
				if _, err := client.Call[string](t.Context(), c, "t", nil); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); (took == 0) != test.prompt || took > 2*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestAVisitEndsWithItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		questions := 0
		l := &fakeDialer{revision: mcp.Revision20251125, handler: tools(func(context.Context, *mcp.Request) (*mcp.Result, error) {
			return nil, requires("", "https://x/login")
		})}
		c := dialFake(t, l, consents(&questions))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		_, err := client.Call[string](ctx, c, "t", nil)
		mustBe(t, err, context.DeadlineExceeded)
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
