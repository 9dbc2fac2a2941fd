package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// beating is a tool that reports progress at an interval, for a time, and then takes a silent time
// to answer.
func beating(interval, reporting, silent time.Duration) handlers {
	return tools(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		sleep := func(d time.Duration) bool {
			select {
			case <-time.After(d):
				return true
			case <-ctx.Done():
				return false
			}
		}
		for began := time.Now(); time.Since(began) < reporting; {
			if !sleep(interval) {
				return nil, context.Cause(ctx)
			}
			_ = req.Peer.Notify(ctx, mcp.Notification{Method: mcp.NotificationProgress, Params: []byte(`{"progress":1}`)})
		}
		if !sleep(silent) {
			return nil, context.Cause(ctx)
		}
		return raw(done), nil
	})
}

func TestTimeouts(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name                        string
		interval, reporting, silent time.Duration
		general, own                [2]time.Duration // idle, total
		want                        client.TimeoutKind
		after                       time.Duration
	}{
		{"none", s, 0, 1000 * s, [2]time.Duration{}, [2]time.Duration{}, "", 1000 * s},
		{"total", s, 0, 10 * s, [2]time.Duration{0, 5 * s}, [2]time.Duration{}, client.TimeoutTotal, 5 * s},
		{"total in spite of progress", s, 10 * s, 0, [2]time.Duration{2 * s, 5 * s}, [2]time.Duration{}, client.TimeoutTotal, 5 * s},
		{"idle", s, 0, 10 * s, [2]time.Duration{3 * s, 0}, [2]time.Duration{}, client.TimeoutIdle, 3 * s},
		{"progress resets idle", 2 * s, 20 * s, s, [2]time.Duration{3 * s, 0}, [2]time.Duration{}, "", 21 * s},
		{"idle after progress", 2 * s, 4 * s, 100 * s, [2]time.Duration{3 * s, 0}, [2]time.Duration{}, client.TimeoutIdle, 7 * s},
		{"of the call", s, 0, 10 * s, [2]time.Duration{0, 60 * s}, [2]time.Duration{0, 2 * s}, client.TimeoutTotal, 2 * s},
		{"off for the call", s, 0, 10 * s, [2]time.Duration{s, s}, [2]time.Duration{-1, -1}, "", 10 * s},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := dialWire(t, beating(test.interval, test.reporting, test.silent), client.Options{Limits: client.Limits{Idle: test.general[0], Total: test.general[1]}})
				began := time.Now()
				_, err := client.Call[string](t.Context(), c, "t", nil, client.CallOptions{Limits: client.Limits{Idle: test.own[0], Total: test.own[1]}})
				if took := time.Since(began); took != test.after {
					t.Errorf("took %v, want %v", took, test.after)
				}
				if test.want == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				var late *client.TimeoutError
				if !errors.As(err, &late) || late.Kind != test.want || late.Method != mcp.MethodCallTool || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want a %s timeout", err, test.want)
				}
			})
		})
	}
}

func TestTimeoutCancelsAtTheServer(t *testing.T) {
	eras(t, func(t *testing.T, revision mcp.Revision) {
		cancelled := make(chan error, 1)
		c := connect(t, tools(func(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
			<-ctx.Done()
			cancelled <- context.Cause(ctx)
			return nil, context.Cause(ctx)
		}), client.Options{Wire: client.Wire{Revision: revision}})
		_, err := client.Call[string](context.Background(), c, "t", nil, client.CallOptions{Limits: client.Limits{Idle: 20 * time.Millisecond}})
		mustBe(t, err, context.DeadlineExceeded)
		<-cancelled
	})
}

// The time in which a question is open does not count, in either era.
func TestHumansHaveTime(t *testing.T) {
	slow := func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
		time.Sleep(time.Hour)
		return &mcp.ElicitResult{Action: mcp.ElicitAccept}, ctx.Err()
	}
	opts := client.Options{Answers: client.Answers{Elicit: slow}, Limits: client.Limits{Idle: 2 * time.Second, Total: 5 * time.Second}}
	t.Run("modern", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := dialWire(t, asker(`{"message":"?"}`), opts)
			if _, err := client.Call[string](t.Context(), c, "t", nil); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("legacy", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &fakeDialer{name: "legacy", revision: mcp.Revision20251125}
			l.handler = tools(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
				time.Sleep(time.Second)
				if _, err := l.inbound().ServeMCP(context.Background(), &mcp.Request{Method: mcp.MethodElicit, Params: []byte(`{"message":"?"}`)}); err != nil {
					return nil, err
				}
				select {
				case <-time.After(time.Duration(len(param(req, "name"))) * time.Second):
				case <-ctx.Done():
				}
				return raw(done), ctx.Err()
			})
			c := dialFake(t, l, opts)
			if _, err := client.Call[string](t.Context(), c, "", nil, client.CallOptions{Limits: client.Limits{Idle: 3 * time.Second}}); err != nil {
				t.Error(err)
			}
			began := time.Now()
			_, err := client.Call[string](t.Context(), c, "toolong", nil, client.CallOptions{Limits: client.Limits{Idle: -1}})
			var late *client.TimeoutError
			if !errors.As(err, &late) || late.Kind != client.TimeoutTotal || time.Since(began) != time.Hour+5*time.Second {
				t.Errorf("got %v after %v, want a timeout once the rest of the time is over", err, time.Since(began))
			}
		})
	})
	eras(t, func(t *testing.T, revision mcp.Revision) { // over a wire
		synctest.Test(t, func(t *testing.T) {
			o := opts
			o.Wire.Revision = revision
			o.Answers.Elicit = func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
				time.Sleep(20 * time.Second)
				return &mcp.ElicitResult{Action: mcp.ElicitAccept}, ctx.Err()
			}
			c := connect(t, asker(`{"message":"?"}`), o)
			if _, err := client.Call[string](t.Context(), c, "t", nil); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestProgressAndLogs(t *testing.T) {
	eras(t, func(t *testing.T, revision mcp.Revision) {
		var token []string
		h := tools(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			token = append(token, string(req.ProgressToken)+"/"+string(req.LogLevel))
			for _, p := range []string{"1", "2", "3"} {
				if req.ProgressToken != nil {
					_ = req.Peer.Notify(ctx, mcp.Notification{Method: mcp.NotificationProgress, Params: []byte(`{"progressToken":` + string(req.ProgressToken) + `,"progress":` + p + `,"total":3,"message":"m"}`)})
				}
			}
			if req.LogLevel != "" {
				_ = req.Peer.Notify(ctx, mcp.Notification{Method: mcp.NotificationMessage, Params: []byte(`{"level":"warning","data":"hot"}`)})
			}
			return raw(done), nil
		})
		c := connect(t, h, client.Options{Wire: client.Wire{Revision: revision}})
		var got []float64
		var logs []mcp.LoggingLevel
		_, err := client.Call[string](context.Background(), c, "t", nil, client.CallOptions{
			OnProgress: func(p mcp.ProgressParams) { got = append(got, p.Progress) },
			OnLog:      func(p mcp.LoggingMessageParams) { logs = append(logs, p.Level) },
		})
		if err != nil || len(got) != 3 || got[2] != 3 || len(logs) != 1 || logs[0] != mcp.LevelWarning {
			t.Fatalf("got progress %v, logs %v, %v", got, logs, err)
		}
		if _, err := client.Call[string](context.Background(), c, "t", nil); err != nil {
			t.Fatal(err)
		}
		if token[0] == "/" || revision.Modern() && token[1] != "/" {
			t.Errorf("tokens and levels: %q; none is to be sent where nobody listens", token)
		}
	})
}

// Without limits, the defaults of the transport apply, unless the caller switches them off.
func TestDefaultTimeouts(t *testing.T) {
	for _, tt := range []struct {
		name         string
		general, own client.Limits
		want         client.TimeoutKind
		after        time.Duration
	}{
		{"default", client.Limits{}, client.Limits{}, client.TimeoutIdle, time.Hour},
		{"no idle limit", client.Limits{Idle: -1}, client.Limits{}, client.TimeoutTotal, 24 * time.Hour},
		{"no limits for the call", client.Limits{}, client.Limits{Idle: -1, Total: -1}, "", 48 * time.Hour},
		{"a longer idle limit", client.Limits{Idle: 20 * time.Hour}, client.Limits{}, client.TimeoutIdle, 20 * time.Hour},
		{"a longer total limit", client.Limits{Total: 30 * time.Hour}, client.Limits{Idle: -1}, client.TimeoutTotal, 30 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tool := tools(func(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
					select {
					case <-time.After(48 * time.Hour):
						return raw(done), nil
					case <-ctx.Done():
						return nil, context.Cause(ctx)
					}
				})
				c := connect(t, tool, client.Options{Limits: tt.general})
				began := time.Now()
				_, err := client.Call[string](context.Background(), c, "t", nil, client.CallOptions{Limits: tt.own})
				if took := time.Since(began); took < tt.after || took > tt.after+time.Minute {
					t.Errorf("took %v, want %v", took, tt.after)
				}
				late, ok := errors.AsType[*client.TimeoutError](err)
				if ok != (tt.want != "") || ok && (late.Kind != tt.want || late.Method != mcp.MethodCallTool) || !ok && err != nil {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		})
	}
}
