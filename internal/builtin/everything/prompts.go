package everything

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// addPrompts adds a prompt for each kind of content, a prompt with arguments, and one that asks the
// user.
func addPrompts(s *server.Server) {
	server.Prompt(s, "test_simple_prompt", "A prompt without arguments.", func(context.Context, none) (string, error) {
		return "This is a simple prompt for testing.", nil
	})

	places := server.CompleteFrom("paris", "park", "party", "test", "testValue1", "testValue2")
	server.Prompt(s, "test_prompt_with_arguments", "A prompt with two arguments.", func(_ context.Context, in struct {
		Arg1 string `json:"arg1" doc:"First test argument"`
		Arg2 string `json:"arg2" doc:"Second test argument"`
	}) (string, error) {
		return fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in.Arg1, in.Arg2), nil
	}, server.PromptOptions{Complete: map[string]server.CompleteFunc{"arg1": places, "arg2": places}})

	server.Prompt(s, "test_prompt_with_embedded_resource", "A prompt with a resource in it.", func(_ context.Context, in struct {
		ResourceURI string `json:"resourceUri" doc:"URI of the resource to embed"`
	}) ([]mcp.PromptMessage, error) {
		return []mcp.PromptMessage{
			userMessage(mcp.Embed(mcp.ResourceContents{URI: in.ResourceURI, MIMEType: "text/plain", Text: "Embedded resource content for testing."})),
			userMessage(mcp.Text("Please process the embedded resource above.")),
		}, nil
	})

	server.Prompt(s, "test_prompt_with_image", "A prompt with an image in it.", func(context.Context, none) ([]mcp.PromptMessage, error) {
		return []mcp.PromptMessage{userMessage(testImage()), userMessage(mcp.Text("Please analyze the image above."))}, nil
	})

	server.Prompt(s, "test_input_required_result_prompt", "A prompt that first asks the user for a context.", func(ctx context.Context, _ none) (string, error) {
		type needed struct {
			Context string `json:"context"`
		}
		answer, err := server.Ask[needed](ctx, "user_context", "What context should the prompt use?")
		if err != nil {
			return "", err
		}
		return "Use this context: " + answer.Context, nil
	})
}

func userMessage(c mcp.Content) mcp.PromptMessage {
	return mcp.PromptMessage{Role: mcp.RoleUser, Content: c}
}
