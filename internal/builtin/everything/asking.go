package everything

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
	"github.com/dowel-mcp/dowel/server"
)

// addAsking adds tools that ask the client's model or its user. In a legacy session the question is
// a request of the server, in a modern one a result that requires input; handlers are the same for
// both.
func addAsking(s *server.Server) {
	server.Tool(s, "test_sampling", "Asks the client's model.", askModel, hints)
	server.Tool(s, "test_elicitation", "Asks the user for a name and an email address.", askUser, hints)
	server.Tool(s, "test_elicitation_sep1034_defaults", "Asks the user with a form that has defaults.", func(ctx context.Context, _ none) (string, error) {
		return describeAnswer(server.AskRaw(ctx, "defaults", newForm[withDefaults]("Please review and update the form fields with defaults")))
	}, hints)
	server.Tool(s, "test_elicitation_sep1330_enums", "Asks the user with a form that has each kind of choice.", func(ctx context.Context, _ none) (string, error) {
		return describeAnswer(server.AskRaw(ctx, "enums", mcp.ElicitParams{Message: "Please choose", RequestedSchema: json.RawMessage(enums)}))
	}, hints)
	server.Tool(s, "ask_url", "Asks the user to visit a web page.", askURL, hints)
	server.Tool(s, "test_missing_capability", "Fails if the client has no model (no sampling capability).", missingCapability, hints)
}

func askModel(ctx context.Context, in struct {
	Prompt string `json:"prompt" doc:"The question for the model"`
}) (string, error) {
	answer, err := server.Sample(ctx, "sample", newQuestion(in.Prompt, 100))
	if err != nil {
		return "", err
	}
	return "LLM response: " + answer.Text(), nil
}

// newQuestion returns a question with one message for the client's model.
func newQuestion(prompt string, maxTokens int) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text(prompt)}}},
		MaxTokens: maxTokens,
	}
}

type user struct {
	Username string `json:"username" doc:"User's response"`
	Email    string `json:"email" doc:"User's email address"`
}

// askUser uses AskRaw, because its result tells a decline from a cancel. Most tools should use Ask,
// which returns the decoded answer.
func askUser(ctx context.Context, in struct {
	Message string `json:"message" doc:"The question for the user"`
}) (string, error) {
	answer, err := server.AskRaw(ctx, "user", newForm[user](in.Message))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("User response: action: %s, content: %s", answer.Action, answerContent(answer)), nil
}

type withDefaults struct {
	Name     string  `json:"name" default:"John Doe"`
	Age      int     `json:"age" default:"30"`
	Score    float64 `json:"score" default:"95.5"`
	Status   string  `json:"status" enum:"active,inactive,pending" default:"active"`
	Verified bool    `json:"verified" default:"true"`
}

// newForm returns a question with a form of T's fields.
func newForm[T any](message string) mcp.ElicitParams {
	fields, err := schema.Form[T]()
	if err != nil {
		panic(err) // only a mistake in the type T can cause this
	}
	return mcp.ElicitParams{Message: message, RequestedSchema: fields.JSON()}
}

// enums is written by hand because of enumNames, the older form of titled choices, which package
// schema does not infer from types.
const enums = `{
  "type": "object",
  "properties": {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": [
      {"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}
    ]},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": [
      {"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}
    ]}}
  }
}`

func describeAnswer(answer *mcp.ElicitResult, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Elicitation completed: action=%s, content=%s", answer.Action, answerContent(answer)), nil
}

func answerContent(answer *mcp.ElicitResult) string {
	if answer.Content == nil {
		return "{}"
	}
	return string(answer.Content)
}

func askURL(ctx context.Context, _ none) (string, error) {
	// The page has nothing to complete, so the user's consent is enough: the last argument, which
	// checks completion, is nil.
	if err := server.AskURL(ctx, "visit", "Please read this page.", "https://modelcontextprotocol.io/specification", nil); err != nil {
		return "", err
	}
	return "The user agreed to visit the page.", nil
}

func missingCapability(ctx context.Context, _ none) (string, error) {
	needs := mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{}}
	if missing, any := mcpwire.MissingCapabilities(server.RequestFrom(ctx).Capabilities(), needs); any {
		return "", &mcp.CapabilityError{Required: missing}
	}
	return "The client has a model.", nil
}
