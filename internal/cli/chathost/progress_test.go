package chathost

import (
	"context"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// A turn that only waits for a task takes a message: the model answers it, and gets the task's
// result later.
func TestMessageDuringTask(t *testing.T) {
	finish := make(chan struct{})
	jobs := server.New("jobs", "1", nil)
	server.Tool(jobs, "job", "Takes long.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-finish:
			return "the job is finished", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}})
	chats, asks, _ := newChatsWith(t, `{"turns": [{"calls": [{"name": "jobs__job", "arguments": {}}]}, {"expect": ["as a task"], "text": "It goes on."},
		{"expect": ["are you there"], "text": "I am here."}, {"expect": ["the job is finished"], "text": "It is finished."}]}`,
		[]hub.Definition{{Name: "jobs", Target: jobs, Source: "user"}})
	id, err := chats.Start(t.Context(), control.ChatOptions{Text: "do the job"})
	if err != nil {
		t.Fatal(err)
	}
	if err := asks.Answer(awaitAsk(t, asks).ID, control.AskAnswer{Action: mcp.ElicitAccept}); err != nil {
		t.Fatal(err)
	}
	var chat control.Chat
	awaitWait := func(answer string) {
		t.Helper()
		polltest.Until(t, "the turn waits for the task after "+answer, func() bool {
			var err error
			chat, err = chats.Read(t.Context(), id, "")
			return err == nil && chat.Here != nil && chat.Here.IsWaiting && chat.Entries[len(chat.Entries)-1].Text == answer
		})
	}
	awaitWait("It goes on.")
	if err := chats.Continue(t.Context(), id, "are you there?"); err != nil {
		t.Fatal(err)
	}
	awaitWait("I am here.")
	close(finish)
	if chat = awaitIdle(t, chats, id); chat.Here.Problem != "" || chat.Here.IsWaiting || chat.Entries[len(chat.Entries)-1].Text != "It is finished." {
		t.Errorf("%+v, %+v", chat.Here, chat.Entries[len(chat.Entries)-1])
	}
	for _, e := range chat.Entries {
		if strings.Contains(e.Text, "the user has written again") {
			t.Errorf("the conversation has %+v", e)
		}
	}
}
