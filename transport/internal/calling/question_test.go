package calling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/transporttest"
)

// asked is a connection on which the server's questions are played: the last frames that the server
// gets.
func asked(t *testing.T, r mcp.Revision, in *recorder, question string) (answer string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, f := connected(t, r, in, transport.ClientOptions{}, nil)
		synctest.Wait() // for the handshake
		before := len(f.received())
		f.send("%s", question)
		synctest.Wait()
		c.Close()
		<-f.ended
		if frames := f.received()[before:]; len(frames) > 0 {
			answer = strings.Join(frames, "\n")
		}
	})
	return answer
}

func TestQuestions(t *testing.T) {
	in := &recorder{answer: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		switch req.Method {
		case mcp.MethodListRoots:
			return &mcp.Result{Value: &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///a", Meta: mcp.Meta{"k": 1}}}}}, nil
		case mcp.MethodElicit:
			return &mcp.Result{Raw: req.Params}, nil
		case mcp.MethodCreateMessage:
			return &mcp.Result{Value: &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: mcp.SamplingContent{mcp.Text("a"), mcp.Text("b")}}}, nil
		case "panic":
			panic("secret")
		case "plain":
			return nil, errors.New("secret")
		case "nothing":
			return nil, nil
		case "empty":
			return &mcp.Result{}, nil
		case "bad":
			return &mcp.Result{Value: "text"}, nil
		case "worse":
			return &mcp.Result{Value: panics{}}, nil
		case "revision":
			return &mcp.Result{Raw: fmt.Appendf(nil, `{"r":%q,"m":%q}`, req.Revision, req.Meta)}, nil
		}
		return nil, fmt.Errorf("wrapped: %w", &mcp.Error{Code: 7, Message: "no", Data: json.RawMessage(`[1]`)})
	}}
	const internal = `{"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"${m}"}}`
	for _, tt := range []struct{ question, answer string }{
		{`{"jsonrpc":"2.0","id":9,"method":"roots/list"}`, `{"jsonrpc":"2.0","id":9,"result":{"roots":[{"uri":"file:///a","_meta":{"k":1}}]}}`},
		{`{"jsonrpc":"2.0","id":"q\n","method":"elicitation/create","params":{"action":"accept","content":{}}}`, `{"jsonrpc":"2.0","id":"q\n","result":{"action":"accept","content":{}}}`},
		{`{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}`, `{"jsonrpc":"2.0","id":9,"result":{"role":"assistant","model":"m","content":{"type":"text","text":"a\nb"}}}`},
		{`{"jsonrpc":"2.0","id":9,"method":"ping"}`, `{"jsonrpc":"2.0","id":9,"result":{}}`},
		{`{"jsonrpc":"2.0","id":"p","method":"ping","params":{"_meta":{}}}`, `{"jsonrpc":"2.0","id":"p","result":{}}`},
		{`{"jsonrpc":"2.0","id":9,"method":"other"}`, `{"jsonrpc":"2.0","id":9,"error":{"code":7,"message":"no","data":[1]}}`},
		{`{"jsonrpc":"2.0","id":9,"method":"panic"}`, internal}, {`{"jsonrpc":"2.0","id":9,"method":"plain"}`, internal}, {`{"jsonrpc":"2.0","id":9,"method":"nothing"}`, internal},
		{`{"jsonrpc":"2.0","id":9,"method":"bad"}`, internal}, {`{"jsonrpc":"2.0","id":9,"method":"worse"}`, internal},
		{`{"jsonrpc":"2.0","id":9,"method":"empty"}`, `{"jsonrpc":"2.0","id":9,"result":{}}`},
		{`{"jsonrpc":"2.0","id":9,"method":"revision","params":{"_meta":{"a":1}}}`, `{"jsonrpc":"2.0","id":9,"result":{"r":"2025-06-18","m":"{\"a\":1}"}}`},
		{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, ``},
	} {
		if got := asked(t, r18, in, tt.question); got != tt.answer && !transporttest.MatchJSON(tt.answer, []byte(got)) {
			t.Errorf("%s\nis answered by %s\nwant           %s", tt.question, got, tt.answer)
		}
		// a modern server may ask nothing
		if got := asked(t, r26, in, tt.question); got != "" {
			t.Errorf("%s is answered by %s in the modern era", tt.question, got)
		}
	}
}

func TestQuestionIsCancelledByTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		in := &recorder{answer: func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return &mcp.Result{}, nil
		}}
		c, f := connected(t, r25, in, transport.ClientOptions{}, nil)
		synctest.Wait() // for the handshake
		before := len(f.received())
		f.send(`{"jsonrpc":"2.0","id":5,"method":"roots/list"}`)
		f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`)
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatal("another question was cancelled")
		}
		f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the cause is %v", err)
		}
		synctest.Wait()
		c.Close()
		<-f.ended
		if frames := f.received()[before:]; len(frames) != 0 {
			t.Errorf("answered %s", frames)
		}
		if in.noted() != "" {
			t.Errorf("told %s", in.noted())
		}
	})
}

type key struct{}

// A question is answered in the context of the call that caused it, where there is only one that
// can have.
func TestContextOfQuestions(t *testing.T) {
	for calls, want := range []string{"<nil>", "call 0", "<nil>"} {
		synctest.Test(t, func(t *testing.T) {
			in := &recorder{answer: func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
				return &mcp.Result{Raw: fmt.Appendf(nil, `{"roots":[],"of":%q}`, fmt.Sprint(ctx.Value(key{})))}, nil
			}}
			c, f := connected(t, r25, in, transport.ClientOptions{}, nil)
			goCall(c, context.WithValue(t.Context(), key{}, "list"), &mcp.Request{Method: mcp.MethodListTools}) // which cannot ask
			for i := range calls {
				goCall(c, context.WithValue(t.Context(), key{}, fmt.Sprintf("call %d", i)), callTool("x"))
			}
			synctest.Wait()
			f.send(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
			synctest.Wait()
			c.Close()
			<-f.ended
			frames := f.received()
			if last := frames[len(frames)-1]; last != fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"roots":[],"of":%q}}`, want) {
				t.Errorf("with %d calls: %s", calls, last)
			}
		})
	}
}

// Whatever ends the call that a question belongs to, ends the question.
func TestQuestionEndsWithItsCall(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(cancel context.CancelCauseFunc, c mcp.Transport, f *fake)
		want error
	}{
		{"the call is cancelled", func(cancel context.CancelCauseFunc, _ mcp.Transport, _ *fake) { cancel(errors.New("enough")) }, nil},
		{"the server goes", func(_ context.CancelCauseFunc, _ mcp.Transport, f *fake) { f.far.Close() }, mcp.ErrConnection},
		{"Close", func(_ context.CancelCauseFunc, c mcp.Transport, _ *fake) { c.Close() }, mcp.ErrClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				in := &recorder{answer: func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
					select {
					case <-ctx.Done():
						ended <- context.Cause(ctx)
					case <-time.After(time.Hour):
						ended <- errors.New("nobody told it")
					}
					return &mcp.Result{}, nil
				}}
				c, f := connected(t, r25, in, transport.ClientOptions{}, nil)
				defer c.Close()
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				call := goCall(c, ctx, callTool("x"))
				synctest.Wait()
				f.send(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
				synctest.Wait()
				tt.end(cancel, c, f)
				if err := <-ended; err == nil || tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && err.Error() != "enough" {
					t.Errorf("the question ended with %v", err)
				}
				<-call
				synctest.Wait()
				for _, frame := range f.received() {
					if strings.Contains(frame, `"result"`) {
						t.Errorf("answered %s", frame)
					}
				}
			})
		})
	}
}

// Calls that may ask run one at a time, so that questions can be told apart. Other requests pass.
func TestSerializeAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := connected(t, r25, nil, transport.ClientOptions{SerializeAsks: true}, func(f *fake, m jsonrpc.Message) {
			if m.Method == mcp.MethodListTools {
				f.reply(m, okResult)
				return
			}
			after(time.Second, func() { f.reply(m, okResult) })
		})
		defer c.Close()
		begin := time.Now()
		var calls []<-chan called
		for range 3 {
			calls = append(calls, goCall(c, t.Context(), callTool("x")))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		synctest.Wait()
		if got := <-goCall(c, ctx, callTool("x")); !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("who waits for the turn is held up: %v", got.err)
		}
		if got := <-goCall(c, t.Context(), &mcp.Request{Method: mcp.MethodListTools}); got.err != nil || time.Since(begin) > 10*time.Millisecond {
			t.Errorf("a list took %v, %v", time.Since(begin), got.err)
		}
		for _, done := range calls {
			if got := <-done; got.err != nil {
				t.Error(got.err)
			}
		}
		if d := time.Since(begin); d != 3*time.Second {
			t.Errorf("three calls took %v", d)
		}
		_ = f
	})
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("marshal secret") }
