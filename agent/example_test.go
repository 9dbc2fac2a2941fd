package agent_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// echoModel takes the place of a model of package agent/openai or agent/anthropic. It calls a tool
// and repeats the result.
type echoModel struct{}

func (echoModel) Window() int { return 0 }

func (echoModel) Reply(_ context.Context, c agent.Conversation) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		reply := &agent.Message{Content: []mcp.Content{mcp.UseTool("call-1", "delete_note", []byte(`{"name":"shopping"}`))}}
		if last := c.Messages[len(c.Messages)-1].Content[0]; last.ToolResult != nil {
			reply.Content = []mcp.Content{mcp.Text("I see: " + last.ToolResult.Content[0].Text)}
		}
		yield(agent.Delta{Text: reply.Text()}, nil)
		yield(agent.Delta{Message: reply}, nil)
	}
}

func Example() {
	ctx := context.Background()
	notes := server.New("notes", "1.0.0", nil)
	server.Tool(notes, "delete_note", "Deletes a note.", func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return in.Name + " is gone", nil
	})
	toolbox, err := agent.Dial(ctx, notes, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer toolbox.Close()
	a := agent.New(echoModel{}, toolbox, &agent.Options{Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
		fmt.Printf("may it call %s, which is %s, with %s?\n", q.Tool.Name, q.Effect, q.Call.Input)
		return agent.Decision{Reason: "I need that note"}, nil
	}})
	for event, err := range a.Run(ctx, mcp.Text("Delete the note shopping.")) {
		if err != nil {
			log.Fatal(err)
		}
		switch event := event.(type) {
		case agent.Approval:
			fmt.Println(event.Allowed, "by the", event.By)
		case agent.Delta:
			if event.Text != "" {
				fmt.Println(event.Text)
			}
		case agent.Ended:
			fmt.Println(event.Reason, "in", event.Steps, "steps")
		}
	}
	// Output:
	// may it call delete_note, which is destructive, with {"name":"shopping"}?
	// false by the user
	// I see: This tool was not run: the user refused: I need that note.
	// answered in 2 steps
}
