package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

func TestOnce(t *testing.T) {
	s := newServer()
	runs, failures := 0, 0
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		p, err := server.Once(ctx, "step", func(context.Context) (point, error) {
			runs++
			return point{X: runs}, nil
		})
		if err != nil {
			return "", err
		}
		_, err = server.Once(ctx, "fails", func(context.Context) (int, error) {
			failures++
			return 0, errors.New("not yet")
		})
		if err == nil {
			return "", errors.New("an error was remembered")
		}
		for _, key := range []string{"a", "b"} {
			if _, err := server.Ask[bool](ctx, key, "?"); err != nil {
				return "", err
			}
		}
		return fmt.Sprint(p.X), nil
	})
	answers := map[string]string{"a": accept(`{"value":true}`), "b": accept(`{"value":true}`)}
	got, _ := ask(t, s, "t", answers)
	want(t, got, textResult("1"))
	got, _ = ask(t, s, "t", answers) // another call
	want(t, got, textResult("2"))
	if failures != 6 {
		t.Errorf("the step that fails ran %d times in 6 rounds", failures)
	}
}

// TestOnceReplayed sends a round twice: a step runs twice, unless a store remembers it.
func TestOnceReplayed(t *testing.T) {
	for _, stored := range []bool{false, true} {
		s := newServer()
		store := server.NewMemoryStore(0)
		charged := 0
		server.Tool(s, "pay", "", func(ctx context.Context, _ anyArgs) (string, error) {
			if _, err := server.Ask[bool](ctx, "sure", "?"); err != nil {
				return "", err
			}
			var s server.Store
			if stored {
				s = store
			}
			n, err := server.OnceStored(ctx, s, "charge", func(context.Context) (int, error) {
				charged++
				return charged, nil
			})
			return fmt.Sprint("receipt ", n), err
		})
		state := stateOf(t, s, request(mcp.MethodCallTool, `{"name":"pay"}`))
		replay := request(mcp.MethodCallTool, "")
		replay.Params = retry(t, json.RawMessage(`{"name":"pay"}`), map[string]json.RawMessage{"sure": json.RawMessage(accept(`{"value":true}`))}, state)
		first, second := serve(t, s, replay), serve(t, s, replay)
		want(t, first, textResult("receipt 1"))
		if stored {
			want(t, second, textResult("receipt 1"))
		} else {
			want(t, second, textResult("receipt 2"))
		}
		other := request(mcp.MethodCallTool, "")
		other.Params = retry(t, json.RawMessage(`{"name":"pay"}`), map[string]json.RawMessage{"sure": json.RawMessage(accept(`{"value":true}`))}, stateOf(t, s, request(mcp.MethodCallTool, `{"name":"pay"}`)))
		want(t, serve(t, s, other), textResult(fmt.Sprint("receipt ", charged)))
	}
}

func TestOnceWithoutCall(t *testing.T) {
	n, err := server.Once(t.Context(), "k", func(context.Context) (int, error) { return 7, nil })
	if n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestMemoryStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := server.NewMemoryStore(time.Minute)
		ran := 0
		slow := func() ([]byte, error) {
			ran++
			time.Sleep(time.Second)
			return []byte("x"), nil
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if got, err := m.Do(t.Context(), "k", slow); string(got) != "x" || err != nil {
					t.Errorf("%s, %v", got, err)
				}
			})
		}
		wg.Wait()
		if ran != 1 {
			t.Errorf("ran %d times", ran)
		}
		if _, err := m.Do(t.Context(), "other", func() ([]byte, error) { return nil, errors.New("no") }); err == nil {
			t.Error("no error")
		}
		if got, err := m.Do(t.Context(), "other", slow); string(got) != "x" || err != nil {
			t.Errorf("after an error: %s, %v", got, err)
		}
		time.Sleep(time.Minute)
		if _, err := m.Do(t.Context(), "k", slow); err != nil || ran != 3 {
			t.Errorf("after the TTL: ran %d times, %v", ran, err)
		}
	})
}

// TestOnceNothing remembers a result that is null.
func TestOnceNothing(t *testing.T) {
	s := newServer()
	runs := 0
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		p, err := server.Once(ctx, "step", func(context.Context) (*point, error) {
			runs++
			return nil, nil
		})
		if err != nil {
			return "", err
		}
		_, err = server.Ask[bool](ctx, "a", "?")
		return fmt.Sprint(p == nil, runs), err
	})
	got, _ := ask(t, s, "t", map[string]string{"a": accept(`{"value":true}`)})
	want(t, got, textResult("true 1"))
}
