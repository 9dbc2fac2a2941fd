package everything_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/mcp"
)

func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, everything.New(), &client.Options{
		Answers: client.Answers{Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Println(q.Message)
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"name":"Ada"}`)}, nil
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	text, err := client.Call[string](ctx, c, "test_input_required_result_elicitation", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
	// Output:
	// What is your name?
	// Hello, Ada!
}
