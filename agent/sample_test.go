package agent

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// permitting returns a run without a loop.
func permitting(t *testing.T, o Options) *run {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return &run{Agent: New(nil, nil, &o), ctx: ctx, cancel: cancel, yield: func(Event, error) bool { return true }}
}

// If the asking server is unknown, an approval covers one request.
func TestSamplingOfWhom(t *testing.T) {
	b := &Toolbox{}
	for i, server := range []string{"a", "a", "b"} {
		b.addTarget(&questionTarget{server: server})
		if a := b.targetOf(t.Context()); a.serverUnsure != (i == 2) || (a.server == "") != (i == 2) {
			t.Errorf("%d: %+v", i, a)
		}
	}
	asked := 0
	r := permitting(t, Options{Approve: func(context.Context, Question) (Decision, error) {
		asked++
		return Decision{Allow: true, For: ThisServer}, nil
	}})
	for i, tt := range []struct {
		sure bool
		want int
	}{{false, 1}, {false, 2}, {true, 3}, {true, 3}, {false, 4}} {
		if err := r.permitSampling(t.Context(), "the gateway", tt.sure, &mcp.CreateMessageParams{}); err != nil || asked != tt.want {
			t.Errorf("%d: asked %d times, want %d, %v", i, asked, tt.want, err)
		}
	}
	if d, err := r.approveCall(&toolCall{use: mcp.ToolUse{Name: "the gateway__x"}, tool: &mcp.Tool{Name: "the gateway__x"}}); err != nil || d.By != byUser {
		t.Errorf("an allowance to use the model goes for tools: %+v, %v", d, err)
	}
}

// The uses of the model by servers are limited in every mode.
func TestSamplesAreBounded(t *testing.T) {
	r := permitting(t, Options{Mode: ModeAll, Limits: Limits{MaxSteps: 3}})
	for i := range 5 {
		err := r.permitSampling(t.Context(), "s", true, &mcp.CreateMessageParams{})
		if (err == nil) != (i < 3) || err != nil && !strings.Contains(err.Error(), "3 times in this run") {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// late is a model that ends the call during the reply to its server.
type late struct{ ends func() }

func (late) Window() int { return 0 }

func (m late) Reply(context.Context, Conversation) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		m.ends()
		yield(Delta{Message: &Message{Content: []mcp.Content{mcp.Text("seven")}, Usage: &Usage{Input: 5, Output: 2}}}, nil)
	}
}

// The tokens of a sample count even if its call has ended.
func TestLateSamplesCount(t *testing.T) {
	b, err := Dial(t.Context(), server.New("s", "1", nil), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	box, r := newInbox(), permitting(t, Options{Mode: ModeAll})
	r.model = late{box.closeInbox}
	ctx := context.WithValue(t.Context(), targetKey{}, &questionTarget{inbox: box, ctx: r.ctx, server: "s", sampled: &r.sampleUsage})
	ended := make(chan error)
	go func() {
		_, err := b.sampleInRun(ctx, &mcp.CreateMessageParams{MaxTokens: 10})
		ended <- err
	}()
	r.handleItem(box.takeItems()[0])
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for range 2 {
		if spent := r.Tokens().Spent; spent != (Usage{Input: 5, Output: 2}) {
			t.Errorf("%+v", spent)
		}
	}
}
